from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker: InProcessBroker) -> Iterator[InProcessBroker]:
    """A running broker, shared by the tests of a module, which use topics and groups of their own."""
    with no_bugs_logged():
        yield shared_broker
