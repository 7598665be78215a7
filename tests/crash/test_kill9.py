"""kill -9 during an acks=all load, twenty times: each acknowledged record is there, once, in order, at its offset.

The guarantee is that of Apache Kafka: an acknowledged record survives the death of the process, because it is in the
page cache. With the idempotent producer no record is duplicated, even if its response was lost.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.admin import Admin
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.numbered_load import PARTITIONS, Load, check_acknowledged, check_complete, read_all
from tests.support.processes.odradek_process import OdradekBroker

KILLS = 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path, {"log.segment.bytes": "50000"})
    process.start()
    yield process
    process.close()


def test_what_was_acknowledged_survives_twenty_kills(broker: OdradekBroker) -> None:
    rng = random.Random(20)
    admin = Admin(broker.bootstrap)
    loads = {
        name: Load(broker.bootstrap, admin.create_topic(name, PARTITIONS), idempotent=name == "idempotent")
        for name in ("idempotent", "plain")
    }
    try:
        for _ in range(KILLS):
            before = {name: load.total for name, load in loads.items()}
            deadline = time.monotonic() + 20
            while any(load.total <= before[name] for name, load in loads.items()):
                assert time.monotonic() < deadline, "no progress after a restart"
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.4))
            broker.kill()
            broker.start()
    finally:
        for load in loads.values():
            load.finish()

    check_complete(loads["idempotent"], broker.bootstrap)
    load = loads["plain"]
    for partition in range(PARTITIONS):
        numbers = read_all(broker.bootstrap, load.topic, partition)
        check_acknowledged(load, partition, numbers)
        acknowledged = [number for number in numbers if number in load.acknowledged[partition]]
        assert acknowledged == sorted(load.acknowledged[partition]), (
            "an acknowledged record is repeated or out of order"
        )
    assert min(load.total for load in loads.values()) > KILLS


def test_the_last_answer_before_the_kill_counts(broker: OdradekBroker) -> None:
    """One record, one response, one kill, repeatedly: the strictest form of the guarantee."""
    topic = Admin(broker.bootstrap).create_topic("last")
    for number in range(5):
        assert Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"%d" % number)]) == [number]
        broker.kill()
        broker.start()
    received = Confluent().consume(broker.bootstrap, topic, 5)
    assert [(r.offset, r.value) for r in received] == [(n, b"%d" % n) for n in range(5)]
