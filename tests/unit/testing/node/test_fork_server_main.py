from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import cast

import pytest

from odradek.testing import Broker
from odradek.testing.node.fork_server import ForkServer
from tests.support.testing import asking  # noqa: F401 - registers the questions
from tests.support.testing.forked import Forked


@pytest.fixture
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def test_a_broker_ends_when_its_requests_end(server: ForkServer) -> None:
    assert Forked(server).close() == 0
    broker = Forked(server)
    broker.start()
    assert broker.close() == 0


def test_ctrl_c_leaves_the_stop_to_the_test_process(server: ForkServer) -> None:
    first = Forked(server)
    first.start()
    os.kill(server.process_id, signal.SIGINT)
    os.kill(first.process_id, signal.SIGINT)
    assert Forked(server).close() == 0
    assert first.close() == 0


def test_a_killed_broker_has_its_signal_as_status(server: ForkServer) -> None:
    broker = Forked(server)
    os.kill(broker.process_id, signal.SIGKILL)
    assert broker.close() == -signal.SIGKILL


def test_a_broker_does_not_hold_the_socket_of_a_killed_server(server: ForkServer) -> None:
    broker = Forked(server)
    os.kill(server.process_id, signal.SIGKILL)
    with pytest.raises((OSError, EOFError)):
        broker.close()


FORKED = """
import sys
from odradek.testing.node import child, fork_server_main
fork_server_main.import_all()
print(*sys.modules)
"""


def test_a_broker_imports_nothing_for_its_start() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], check=True, capture_output=True, text=True, timeout=60)
    with Broker(own_process=True) as broker:
        loaded = cast("set[str]", broker.ask("loaded_modules"))
    for_itself = {name for name in loaded - set(done.stdout.split()) if not name.startswith("tests")}
    assert for_itself == set()
