"""kill -9 at random instants, five hundred times, also while the broker is starting; nothing that was answered is lost.

Three promises at a time: acknowledged records (idempotent and not), committed offsets, created topics. The seed is
printed; ODRADEK_SOAK_SEED repeats its choices (not the scheduling of the machine), ODRADEK_SOAK_KILLS shortens the run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.admin import Admin
from tests.support.loads.numbered_load import PARTITIONS, Load, check_acknowledged, check_complete, read_all
from tests.support.processes.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "500"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
KILL_DURING_START = 0.25
START_S = 0.5
PROGRESS_TIMEOUT_S = 30
GROUP = "committer"
SETTINGS = {
    "log.segment.bytes": "200000",
    "offsets.topic.segment.bytes": "4000",
    # No life is as long as the default interval of a minute: each start would recover all that was ever written.
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "200",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path, SETTINGS)
    process.start()
    yield process
    process.close()


def test_nothing_answered_is_lost(broker: OdradekBroker) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    rng = random.Random(SEED)
    admin = Admin(broker.bootstrap)
    loads = {
        name: Load(broker.bootstrap, admin.create_topic(name, PARTITIONS), idempotent=name == "idempotent")
        for name in ("idempotent", "plain")
    }
    topics = []
    try:
        for number in range(KILLS):
            await_progress(loads)
            topics.append(admin.create_topic(f"made-{number}", 1))
            commit(broker.bootstrap, number)
            time.sleep(rng.uniform(0, 0.4))
            broker.kill()
            while rng.random() < KILL_DURING_START:
                broker.launch()
                time.sleep(rng.uniform(0, START_S))
                broker.kill()
            broker.start()
            assert committed(broker.bootstrap) == number, "a committed offset is lost"
    finally:
        for load in loads.values():
            load.finish()

    check_complete(loads["idempotent"], broker.bootstrap)
    for partition in range(PARTITIONS):
        check_acknowledged(loads["plain"], partition, read_all(broker.bootstrap, "plain", partition))
    assert set(topics) <= set(admin.topics()), "a created topic is lost"
    broker.stop_cleanly()


def await_progress(loads: dict[str, Load]) -> None:
    before = {name: load.total for name, load in loads.items()}
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while any(load.total <= before[name] for name, load in loads.items()):
        assert time.monotonic() < deadline, "no progress after a restart"
        time.sleep(0.005)


def new_committer(bootstrap: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False, "log_level": 0}
    )


def commit(bootstrap: str, offset: int) -> None:
    consumer = new_committer(bootstrap)
    try:
        consumer.commit(offsets=[confluent_kafka.TopicPartition("plain", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def committed(bootstrap: str) -> int:
    consumer = new_committer(bootstrap)
    try:
        return int(consumer.committed([confluent_kafka.TopicPartition("plain", 0)], timeout=20)[0].offset)
    finally:
        consumer.close()
