from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.testing import Broker
from odradek.testing.node.fork_server import ForkServer, ForkServers
from tests.support.testing import asking  # noqa: F401 - registers the questions
from tests.support.testing.forked import Forked
from tests.support.waiting import eventually

PIPES = (0, 1, 2)
"""Those of the tests: standard input is empty, so such a broker ends at once."""

CLOSED = 2**30
"""Above what a process may have open."""


@pytest.fixture
def servers() -> Iterator[ForkServers]:
    servers = ForkServers()
    yield servers
    servers.close()


def test_each_broker_is_a_child_of_the_server() -> None:
    server = ForkServer()
    brokers = [Forked(server) for _ in range(3)]
    for broker in brokers:
        broker.start()
    children = {child.pid for child in psutil.Process(server.process_id).children()}
    assert children == {broker.process_id for broker in brokers}
    assert len(children) == 3
    assert [broker.close() for broker in brokers] == [0, 0, 0]
    server.close()
    assert not psutil.pid_exists(server.process_id)


def test_another_server_takes_the_place_of_a_killed_one(servers: ForkServers) -> None:
    first = servers.fork(PIPES)[0]
    assert servers.fork(PIPES)[0] is first
    os.kill(first.process_id, signal.SIGKILL)
    assert servers.fork(PIPES)[0] is not first


def test_a_fork_that_fails_with_each_server_is_told(servers: ForkServers) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        servers.fork((CLOSED, CLOSED, CLOSED))


def test_a_broker_has_environment_directory_and_path_of_the_time_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(own_process=True):
        pass
    (tmp_path / "only_here.py").write_text("")
    monkeypatch.setenv("ODRADEK_TEST_VALUE", "now")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with Broker(own_process=True) as broker:
        assert broker.ask("what_it_inherits", variable="ODRADEK_TEST_VALUE", module="only_here") == (
            "now",
            str(tmp_path),
            True,
        )


def test_what_a_broker_prints_goes_to_the_standard_error_of_the_time_of_its_start(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Broker(own_process=True) as broker:
        broker.ask("print_in_broker", text="here I am")
    assert "here I am" in capfd.readouterr().err


FIRST = """
import subprocess, sys
from odradek.testing import Broker

def popen(*arguments, **options):
    print(*sorted(sys.modules))
    raise OSError

subprocess.Popen = popen
try:
    Broker(own_process=True).start()
except BaseException:
    pass
"""


def test_the_server_starts_before_the_test_process_imports_the_rest_of_the_kit() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True, timeout=60)
    found = set(done.stdout.splitlines()[0].split())
    assert "odradek.testing.node.fork_server" in found
    assert not {"concurrent.futures", "logging", "pickle", "odradek.testing.node.process_node"} & found


ENDS = """
import os
from odradek.testing import Broker
from odradek.testing.node.fork_server import FORK_SERVERS
broker = Broker(own_process=True).start()
print(FORK_SERVERS._server.process_id, flush=True)
"""

ENDINGS = {
    "by itself": "",
    "at once": "os._exit(0)",
    "killed": "os.kill(os.getpid(), 9)",
    "killed, with a forked child": "os.fork() and os.kill(os.getpid(), 9); import time; time.sleep(10)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_server_ends_with_the_test_process(ending: str) -> None:
    script = ENDS + ENDINGS[ending]
    with subprocess.Popen([sys.executable, "-W", "error", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        process.wait(30)
        eventually(lambda: not psutil.pid_exists(server))
