"""Segments of old formats, put into a partition's directory, are served alike by Apache Kafka 3.9 and by Odradek.

Both get the same `.log` files and nothing else, as after a crash that left no index: each recovers them and is then
asked for every offset, in Fetch versions with and without conversion, and for offsets by timestamp.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import ListOffsetsResponse
from odradek.protocol.records.batch import batches
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.compaction.compaction import BareLog, KeyValue
from tests.support.disks.logs import NOW
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.transcripts.transcript import without_filler
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

CONVERTED, NOT_CONVERTED = "converted", "not-converted"
TOPICS: Final = {CONVERTED: {}, NOT_CONVERTED: {"message.downconversion.enable": "false"}}
SETTINGS: Final = {"log.index.interval.bytes": "100"}
OLD_CODECS: Final = (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)
SIZES: Final = (1, 150, 700, 1 << 20)
FETCH_VERSIONS: Final = (0, 2, 3, 4, 10, 11, 12)
LAST_VERSION_CONVERTED: Final = 3
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
PRODUCER = 7


def pairs(count: int) -> list[KeyValue]:
    """Keys and values, some of them null."""
    return [(b"key-%d" % n if n % 3 else None, b"value-%d " % n * 5 if n % 4 else None) for n in range(1, count + 1)]


def write_segments(path: Path) -> BareLog:
    """One segment of magic 0, one of magic 1, one that changes from 1 to 2, one of magic 2."""
    log = BareLog(path, SETTINGS)
    for pair in pairs(4):
        log.write_legacy(pair, magic=0)
    for codec in OLD_CODECS:
        log.write_legacy(*pairs(5), magic=0, compression=codec)
    log.roll()
    for step, codec in enumerate((*OLD_CODECS, *OLD_CODECS)):
        time = NOW + 1000 * step - 1500 * (step % 2)  # not in order
        log.write_legacy(pairs(1)[0], timestamp=time, timestamp_type=step % 2)
        log.write_legacy(*pairs(5), compression=codec, timestamp=time + 10, timestamp_type=step // 3)
    with_gaps = [Record(log.next_offset + n, NOW + 6000 + n, b"k", b"v" * n) for n in (1, 4, 6)]
    log.append(build_messages(with_gaps, 1, base_offset=log.next_offset, compression_type=CompressionType.GZIP))
    log.roll()
    log.write_legacy(*pairs(3), compression=CompressionType.SNAPPY, timestamp=NOW + 7000)
    for codec in CompressionType:
        log.write(*pairs(5), compression=codec, timestamp=NOW + 8000 + 100 * codec, leader_epoch=0)
    log.roll()
    for commit in (True, False):
        log.write(*pairs(3), producer_id=PRODUCER, transactional=True, timestamp=NOW + 9000, leader_epoch=0)
        log.write(*pairs(2), timestamp=NOW + 8900, timestamp_type=1, leader_epoch=0)
        log.end_transaction(PRODUCER, commit=commit, timestamp=NOW + 9100, leader_epoch=0)
    log.write(*pairs(2), timestamp=NOW + 9200, leader_epoch=0)
    return log


def replace_segments(broker: Broker, topic: str, log: BareLog) -> None:
    """The partition's files are those of the log; everything else is for recovery to find out."""
    directory = broker.log_dir / f"{topic}-0"
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for number, base in enumerate(log.bases):
        copy = directory / f"{base:020d}.log"
        shutil.copy(log.path / copy.name, copy)
        os.utime(copy, (NOW // 1000 + number, NOW // 1000 + number))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> BareLog:
    return write_segments(tmp_path_factory.mktemp("written"))


@pytest.fixture(scope="module")
def brokers(
    log: BareLog, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Broker]]:
    """Apache Kafka and Odradek, both on the segments."""
    directory = tmp_path_factory.mktemp("brokers")
    both = (
        ApacheBroker(directory / "apache", zookeeper.new_chroot(), SETTINGS),
        OdradekBroker(directory / "odradek", SETTINGS),
    )
    try:
        for broker in both:
            broker.start()
            for topic, config in TOPICS.items():
                Admin(broker.bootstrap).create_topic(topic, config=config)
            broker.stop()
            for file in (CLEAN_SHUTDOWN_FILE, "recovery-point-offset-checkpoint"):
                (broker.log_dir / file).unlink()
            for topic in TOPICS:
                replace_segments(broker, topic, log)
            broker.start()
        yield both
    finally:
        for broker in both:
            broker.close()


def opened(records: bytes) -> list[object]:
    """Converted records: messages as bytes, wrappers by what is in them, since codecs are not the same programs."""
    whole = without_filler(records)
    found: list[object] = []
    for batch in batches(memoryview(whole)):
        if batch.compression_type:
            inside = tuple((record.offset, record.timestamp, record.key, record.value) for record in batch.records())
            found.append((batch.magic, batch.attributes, batch.last_offset, batch.max_timestamp, inside))
        else:
            found.append(bytes(batch.buffer))
    return found


class Answer(NamedTuple):
    """What matters of the answer about the partition."""

    partition: tuple[object, ...]
    records: bytes | list[object]
    """Opened, if they may have been converted."""


def fetch(client: RawClient, version: int, topic: str, offset: int, max_bytes: int, isolation: int) -> Answer:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    request = build(
        ApiKey.FETCH,
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=isolation,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    answer = client.call(request, version)
    assert isinstance(answer, FetchResponse)
    found = answer.responses[0].partitions[0]
    records = bytes(found.records or b"")
    partition_data = (
        answer.error_code,
        found.error_code,
        found.high_watermark,
        found.last_stable_offset,
        found.log_start_offset,
        [(aborted.producer_id, aborted.first_offset) for aborted in found.aborted_transactions or ()],
        found.preferred_read_replica,
    )
    return Answer(partition_data, opened(records) if version <= LAST_VERSION_CONVERTED else records)


def are_alike(theirs: Answer, ours: Answer, *, at_marker: bool) -> bool:
    """Whether the answers are the same.

    Asked to convert from a marker on, Apache counts the marker as the first batch, which it has converted before the
    others: it sends the batch behind the marker twice. Ours is sent once, which leaves room for more.
    """
    if at_marker and isinstance(theirs.records, list) and isinstance(ours.records, list):
        once = list(dict.fromkeys(theirs.records))
        is_beginning = ours.records[: len(once)] == once and bool(once) == bool(ours.records)
        return theirs.partition == ours.partition and is_beginning
    return theirs == ours


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch(brokers: tuple[Broker, Broker], log: BareLog, version: int, topic: str) -> None:
    apache, odradek = (RawClient(broker.host, broker.port) for broker in brokers)
    markers = {batch.last_offset for batch in log.batches() if batch.is_control} if topic == CONVERTED else set()
    isolations = (0, 1) if version > LAST_VERSION_CONVERTED else (0,)
    with apache, odradek:
        different = []
        for offset, max_bytes, isolation in product(range(log.next_offset + 2), SIZES, isolations):
            theirs, ours = (fetch(client, version, topic, offset, max_bytes, isolation) for client in (apache, odradek))
            if not are_alike(theirs, ours, at_marker=offset in markers):
                different.append((offset, max_bytes, isolation, theirs, ours))
    assert not different, (len(different), different[0])


def list_offsets(client: RawClient, version: int, timestamp: int) -> object:
    partition = {"partition_index": 0, "timestamp": timestamp, "max_num_offsets": 10 if version == 0 else 1}
    topics = [{"name": CONVERTED, "partitions": [partition]}]
    answer = client.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=topics), version)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.old_style_offsets, found.timestamp, found.offset, found.leader_epoch


@pytest.mark.parametrize("version", [0, 1, 9])
def test_list_offsets(brokers: tuple[Broker, Broker], log: BareLog, version: int) -> None:
    times = {record.timestamp + after for record in log.records() for after in (-1, 0, 1)} | {0, EARLIEST, LATEST}
    if version == 0:
        times |= {NOW + 1000 * number for number in range(len(log.bases) + 1)}  # when the segments were written to
    else:
        times.add(MAX_TIMESTAMP)
    apache, odradek = (RawClient(broker.host, broker.port) for broker in brokers)
    with apache, odradek:
        for timestamp in sorted(times):
            assert list_offsets(apache, version, timestamp) == list_offsets(odradek, version, timestamp), timestamp


def test_recovered_indexes(brokers: tuple[Broker, Broker]) -> None:
    """The last test: it stops the brokers, which cuts the indexes of the active segment to what is in them."""
    apache, odradek = brokers
    for broker in brokers:
        broker.stop()
    for topic in TOPICS:
        for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
            theirs, ours = (
                {path.name: path.read_bytes().hex() for path in (broker.log_dir / f"{topic}-0").glob(f"*{suffix}")}
                for broker in (apache, odradek)
            )
            assert theirs == ours, suffix
