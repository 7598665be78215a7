"""A broker that a fork server has forked, with its pipes."""

from __future__ import annotations

import os
from typing import BinaryIO, cast

from odradek.storage.disk.worker import read_message, write_message
from odradek.testing.node.fork_server import ForkServer
from odradek.testing.node.settings import broker_settings


class Forked:
    """Waits for its settings until `start`. To be closed."""

    def __init__(self, server: ForkServer) -> None:
        (its_requests, requests), (answers, its_answers) = os.pipe(), os.pipe()
        self._requests: BinaryIO = os.fdopen(requests, "wb")
        self._answers: BinaryIO = os.fdopen(answers, "rb")
        self._server = server
        try:
            self.process_id = server.fork((its_requests, its_answers, 2))
        except BaseException:
            self._requests.close()
            self._answers.close()
            raise
        finally:
            os.close(its_requests)
            os.close(its_answers)

    def start(self) -> None:
        """Returns when it serves clients."""
        write_message(self._requests, broker_settings({}, {}))
        number, is_error, answer = cast("tuple[int, bool, object]", read_message(self._answers))
        assert (number, is_error) == (0, False), answer

    def close(self) -> int:
        """End its input and wait until it ends. Its status."""
        self._requests.close()
        with self._answers:
            assert self._answers.read() == b""
        return self._server.wait(self.process_id)
