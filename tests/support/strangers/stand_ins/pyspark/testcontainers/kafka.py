"""The broker under test in the place of a container."""

from __future__ import annotations

import os


class KafkaContainer:
    """Is there from the beginning: the tests use its address alone."""

    def __init__(self, image: str) -> None:
        self.image = image

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def get_bootstrap_server(self) -> str:
        return os.environ["STRANGERS_BOOTSTRAP"]
