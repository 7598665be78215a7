"""A producer with acks=0 that flushes and exits, on a busy machine: records that it has given to the kernel are kept.

librdkafka's `flush` returns when the last bytes were written to the socket, and the exit closes it. The broker is far
behind by then: the processors are busy with something else, and it gets none of them while the producer writes.
ODRADEK_SOAK_EXITS shortens the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import pauses
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_topics import end_offset, make_topic

pytestmark = pytest.mark.soak

RUNS = int(os.environ.get("ODRADEK_SOAK_EXITS", "30"))
RECORDS = 400
BUSY_PROCESSES = 4
PRODUCER_TIMEOUT_S = 60
PRODUCE_AND_EXIT = """
import sys, confluent_kafka
settings = {"bootstrap.servers": sys.argv[1], "acks": 0, "linger.ms": 0, "batch.num.messages": 1}
producer = confluent_kafka.Producer(settings)
producer.produce(sys.argv[2], b"the first one", partition=0)
assert producer.flush(30) == 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3]) - 1):
    producer.produce(sys.argv[2], b"x" * 100, partition=0)
assert producer.flush(30) == 0
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(tmp_path)
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def busy_machine() -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    yield
    for process in busy:
        process.kill()
    for process in busy:
        process.wait()


def produce_and_exit(broker: OdradekBroker, topic: str) -> None:
    """All but the first record are on their way, and the producer is gone, before the broker goes on."""
    command = [sys.executable, "-c", PRODUCE_AND_EXIT, broker.bootstrap, topic, str(RECORDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == b"ready\n"
        pauses.pause(broker.pid)
        try:
            producer.communicate(b"go\n", timeout=PRODUCER_TIMEOUT_S)
        finally:
            pauses.resume(broker.pid)
            producer.kill()
        assert producer.returncode == 0


@pytest.mark.usefixtures("busy_machine")
def test_nothing_that_was_flushed_is_lost(broker: OdradekBroker) -> None:
    make_topic(broker, "t")
    for run in range(1, RUNS + 1):
        produce_and_exit(broker, "t")
        eventually(lambda: end_offset(broker, "t"), accept=lambda end, wanted=run * RECORDS: end == wanted)
