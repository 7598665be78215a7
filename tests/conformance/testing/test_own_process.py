"""A broker that has a process of its own ends with the test process, however that ends, and leaves no data."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.waiting import eventually

SCRIPT = """
import os, sys, time
from odradek.testing import Broker
from tests.support.testing import asking
broker = Broker(own_process=True).start()
print(broker.ask("process_id"), broker.ask("log_directory"), flush=True)
{then}
"""

THEN = {
    "killed": "time.sleep(60)",
    "killed, with a forked child": "os.fork() or os.setpgid(0, 0); time.sleep(60)",
    "ended without a stop": "sys.stdin.read()",
}


@pytest.mark.parametrize("end", THEN)
def test_it_does_not_outlive_the_test_process(end: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(then=THEN[end])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    broker_id, directory = process.stdout.readline().split()
    assert is_running(int(broker_id))
    forked = children_of(process.pid) - {int(broker_id)}
    if end != "ended without a stop":
        process.kill()
    process.stdin.close()
    process.wait(30)
    eventually(lambda: not is_running(int(broker_id)))
    assert not Path(directory).parent.exists()
    for child in forked:  # the fork server, too, which ends by itself
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.stdout.close()


def is_running(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children_of(process_id: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()}


THREAD = """
from odradek.testing import Broker
from tests.support.testing import asking
broker = Broker().start()
print(broker.ask("log_directory"), flush=True)
"""


def test_a_broker_in_a_thread_that_was_not_stopped_removes_its_data_at_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", THREAD], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).parent.exists()


USE = """
from confluent_kafka import Producer
from odradek.testing import Broker
for own_process in (False, True):
    with Broker(own_process=own_process) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"value")
        producer.flush()
        assert broker.topic("t").wait_for(1)[0].value == b"value"
        broker.reset()
"""


def test_nothing_is_written_to_the_directories_of_the_user(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(REPOSITORY / "src")}
    subprocess.run([sys.executable, "-c", USE], cwd=here, env=environment, check=True, timeout=60)
    assert [*home.rglob("*"), *here.rglob("*")] == []
