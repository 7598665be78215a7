"""A broker on a small disk that is really full: of records, and of another file.

Apache takes the log directory offline there, which ends a broker with one directory; these tests are about Odradek.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from tests.conformance.files.small_disk import SmallDisk
from tests.support.admin import Admin
from tests.support.loads.clients import Confluent
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.process import ProcessError
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

SIZE = 16 * 1024 * 1024
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "512",
    "log.segment.delete.delay.ms": "100",
    "offsets.topic.num.partitions": "1",
}
VALUE = b"x" * 20_000
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path / "broker" / "logs", SIZE) as disk:
        yield disk


@pytest.fixture
def small(disk: SmallDisk, tmp_path: Path) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(tmp_path / "broker", SETTINGS)
    broker.prefix = disk.prefix
    broker.start()
    yield broker
    log = broker.log_text()
    broker.close()
    assert "SIGBUS" not in log


def produce(broker: OdradekBroker, topic: str, value: bytes = VALUE) -> int:
    """The error of one Produce with acks=all."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(value)}]}]
    with RawClient(broker.host, broker.port) as client:
        response = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5_000, topic_data=data), 9)
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def fill(broker: OdradekBroker, topic: str, limit: int = 10_000, *, start: int = 0) -> int:
    """Produce until it is refused, or up to so many; how many records there are then."""
    for count in range(start, limit):
        error = produce(broker, topic, b"%d " % count + VALUE)
        if error:
            assert error == STORAGE_ERROR
            return count
    return limit


def check_all_there(broker: OdradekBroker, topic: str, count: int) -> None:
    found = Confluent().consume(broker.bootstrap, topic, count)
    assert [record.offset for record in found] == list(range(count))
    assert all((record.value or b"").startswith(b"%d " % record.offset) for record in found)


def commit_error(broker: OdradekBroker) -> int:
    partitions = [{"partition_index": 0, "committed_offset": 1}]
    request = build(
        ApiKey.OFFSET_COMMIT,
        group_id="group",
        generation_id_or_member_epoch=-1,
        topics=[{"name": "fill", "partitions": partitions}],
    )
    with RawClient(broker.host, broker.port) as client:
        return client.call(request, 5).topics[0].partitions[0].error_code  # type: ignore[attr-defined]


def commit(broker: OdradekBroker, offset: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "group"})
    try:
        consumer.commit(offsets=[confluent_kafka.TopicPartition("fill", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def resumes(broker: OdradekBroker, topic: str, value: bytes = VALUE) -> bool:
    return eventually(lambda: produce(broker, topic, value) == 0, timeout_s=20)


def test_filled_by_records(disk: SmallDisk, small: OdradekBroker) -> None:
    admin = Admin(small.bootstrap)
    admin.create_topic("fill")
    admin.create_topic("ballast")
    commit(small, 7)
    assert fill(small, "ballast", 150) == 150
    count = fill(small, "fill")
    assert count > 100
    assert 0 < disk.free_bytes <= SIZE // 16 + 200_000, "the reserve is left"
    for _ in range(20):
        assert produce(small, "fill") == STORAGE_ERROR
    check_all_there(small, "fill", count)
    assert commit_error(small) == ErrorCode.NOT_COORDINATOR, "which makes clients look for it and try again"
    assert set(admin.topics()) >= {"fill", "ballast"}
    assert small.log_text().count(" is full: ") == 1
    assert "offline" not in small.log_text()

    small.kill()
    small.start()
    before, count = count, fill(small, "fill", start=count)
    assert count < before + 20, "what a start gives back is soon used up"
    check_all_there(small, "fill", count)
    Admin(small.bootstrap).create_topic("made-on-a-full-disk")

    Admin(small.bootstrap).delete_topic("ballast")
    assert resumes(small, "fill", b"%d " % count)
    commit(small, 8)
    check_all_there(small, "fill", count + 1)
    assert produce(small, "made-on-a-full-disk") == 0
    small.stop()
    small.start()
    check_all_there(small, "fill", count + 1)


def test_filled_by_a_foreign_file(disk: SmallDisk, small: OdradekBroker) -> None:
    """Nothing is left, not even the reserve: writes fail wherever they are made."""
    admin = Admin(small.bootstrap)
    admin.create_topic("fill")
    count = fill(small, "fill", 30)
    disk.fill()
    assert disk.free_bytes == 0
    eventually(lambda: " is full: " in small.log_text())
    for _ in range(5):
        assert produce(small, "fill") == STORAGE_ERROR
    check_all_there(small, "fill", count)
    refused = 0
    for number in range(200):  # the metadata tree has a log of its own, and that has room for some
        try:
            admin.create_topic(f"new-{number}")
        except confluent_kafka.KafkaException:
            refused += 1
            break
    check_all_there(small, "fill", count)
    disk.remove()
    assert resumes(small, "fill", b"%d " % count)
    admin.create_topic("after")
    assert resumes(small, "after")
    check_all_there(small, "fill", count + 1)
    small.kill()
    small.start()
    check_all_there(small, "fill", count + 1)
    assert produce(small, "after") == 0


def test_start_on_a_disk_without_a_free_byte(disk: SmallDisk, small: OdradekBroker) -> None:
    """A broker cannot even register there. It says why, and has changed nothing."""
    Admin(small.bootstrap).create_topic("fill")
    count = fill(small, "fill", 30)
    disk.fill()
    assert produce(small, "fill") == STORAGE_ERROR
    small.kill()
    disk.fill("more")  # what the process has given back
    for _ in range(2):
        with pytest.raises(ProcessError, match=r"(?s)ended with status 1 .*\bfull\b"):
            small.start()
    disk.remove("more")
    disk.remove()
    small.start()
    check_all_there(small, "fill", count)
    assert resumes(small, "fill", b"%d " % count)
    check_all_there(small, "fill", count + 1)
