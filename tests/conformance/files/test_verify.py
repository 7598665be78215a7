"""`odradek verify` on the directory of a broker at work, of one that was killed, and of one that was stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker

Broker = OdradekBroker | ApacheBroker
ROUNDS = 4
RECORDS = 2000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    running = OdradekBroker(tmp_path, {"log.segment.bytes": "60000", "log.index.interval.bytes": "500"})
    yield running
    running.close()


def produce(bootstrap: str, codec: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec, "batch.size": 4000}
    )
    for number in range(RECORDS):
        producer.produce("verified", b"value %d" % number * 5, b"key")
        producer.poll(0)
    assert producer.flush(30) == 0


def verify(directory: Path) -> tuple[int, str]:
    """Exit status and findings, while the broker goes on: another process."""
    command = [sys.executable, "-m", "odradek", "verify", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_wrong_in_any_state(broker: OdradekBroker) -> None:
    broker.start()
    for codec in ("none", "lz4", "zstd", "none")[:ROUNDS]:
        produce(broker.bootstrap, codec)
        assert verify(broker.log_dir) == (0, "1 partitions, 0 findings\n")
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", "verify", str(broker.log_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as meanwhile:
        produce(broker.bootstrap, "none")
        output = meanwhile.communicate(timeout=60)[0]
    assert output == "1 partitions, 0 findings\n"
    broker.kill()
    assert verify(broker.log_dir) == (0, "1 partitions, 0 findings\n")
    broker.start()
    produce(broker.bootstrap, "gzip")
    broker.stop()
    assert verify(broker.log_dir) == (0, "1 partitions, 0 findings\n")
