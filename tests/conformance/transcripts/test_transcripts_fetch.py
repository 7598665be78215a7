"""What Apache Kafka answers to Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from tests.support.transcripts.transcript import Plain, Transcript
from tests.support.wire.requests import OLD, batch, build, message_set

pytestmark = pytest.mark.oracle

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -3, -4, -5


def create(t: Transcript, stem: str, partitions: int = 1, **configs: str) -> tuple[str, bytes]:
    """A new topic and its id."""
    topic = t.name(stem)
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    new = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
    answer = t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 7)
    return topic, answer.topics[0].topic_id


def append(t: Transcript, topic: str, records: bytes, version: int = 9, partition: int = 0) -> None:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
    answer = t.quietly(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data), version)
    assert answer.responses[0].partition_responses[0].error_code == 0


def fetch(
    topic: str | bytes, offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, **fields: object
) -> Request:
    """A fetch of one partition of a topic given by name or id; `p_...` are fields of the partition."""
    in_partition = {name[2:]: fields.pop(name) for name in list(fields) if name.startswith("p_")}
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes, **in_partition}
    which = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
    return build(
        ApiKey.FETCH, **{"max_wait_ms": 50, "min_bytes": 1, "topics": [{**which, "partitions": [asked]}], **fields}
    )


def three_batches(t: Transcript, stem: str) -> tuple[str, bytes]:
    """Offsets 0-2, 3 and 4-5."""
    topic, topic_id = create(t, stem)
    append(t, topic, batch(b"a", b"b", b"c"))
    append(t, topic, batch(b"d", key=b"k"))
    append(t, topic, batch(b"e", None))
    return topic, topic_id


def test_fetch_every_version(transcript: Transcript) -> None:
    t = transcript
    topic, topic_id = three_batches(t, "fetched")
    for version in range(18):
        which = topic_id if version > 12 else topic
        t.call(f"from the start v{version}", fetch(which, 0), version)
        t.call(f"inside a batch v{version}", fetch(which, 1), version)
        t.call(f"at the end v{version}", fetch(which, 6), version)
        t.call(f"beyond the end v{version}", fetch(which, 7), version)
    compressed, _ = create(t, "compressed")
    append(t, compressed, batch(b"x" * 100, b"y" * 100, compression_type=3))
    for version in (0, 2, 4):
        t.call(f"compressed, from inside v{version}", fetch(compressed, 1, max_bytes=50), version)


def test_fetch_of_message_sets(transcript: Transcript) -> None:
    t = transcript
    topic, _ = create(t, "mixed")
    append(t, topic, message_set(0, b"zero", b"null key"), 0)
    append(t, topic, message_set(1, b"one", key=b"k"), 2)
    append(t, topic, batch(b"two", key=b"k"))
    for version in (0, 1, 2, 3, 4, 11):
        t.call(f"everything v{version}", fetch(topic, 0), version)
        t.call(f"from the middle v{version}", fetch(topic, 2), version)
    old, _ = create(t, "old-format", message_format_version="0.10.0")
    append(t, old, batch(b"stays", b"magic 2"))
    t.call("a topic with message.format.version", fetch(old, 0), 4)


def test_fetch_errors(transcript: Transcript) -> None:
    t = transcript
    topic, topic_id = three_batches(t, "errors")
    missing = t.name("missing")
    for version in (0, 4, 11, 12):
        t.call(f"unknown topic v{version}", fetch(missing, 0), version)
        t.call(f"unknown partition v{version}", fetch(topic, 0, partition=5), version)
        t.call(f"negative offset v{version}", fetch(topic, -1), version)
    for version in (13, 17):
        t.call(f"unknown topic id v{version}", fetch(b"\x01" * 16, 0), version)
        t.call(f"zero topic id v{version}", fetch(bytes(16), 0), version)
        t.call(f"unknown partition v{version}", fetch(topic_id, 0, partition=5), version)
    for version, which in ((9, topic), (12, topic), (17, topic_id)):
        t.call(f"leader epoch too new v{version}", fetch(which, 0, p_current_leader_epoch=5), version)
        t.call(f"leader epoch right v{version}", fetch(which, 0, p_current_leader_epoch=0), version)
        t.call(f"leader epoch unknown v{version}", fetch(which, 0, p_current_leader_epoch=-1), version)
    for version, which in ((12, topic), (17, topic_id)):
        t.call(f"last fetched epoch 0 v{version}", fetch(which, 3, p_last_fetched_epoch=0), version)
        t.call(f"last fetched epoch 3 v{version}", fetch(which, 3, p_last_fetched_epoch=3), version)
        t.call(f"last fetched epoch 0 beyond the end v{version}", fetch(which, 9, p_last_fetched_epoch=0), version)
    t.call("a replica that is none, v11", fetch(topic, 0, replica_id=99), 11)
    t.call("a debugging consumer, v11", fetch(topic, 0, replica_id=-2), 11)
    t.call("a cluster id that is another's", fetch(topic, 0, cluster_id="not-this-one"), 12)
    t.call("read committed", fetch(topic, 0, isolation_level=1), 11)
    t.call("isolation level 7", fetch(topic, 0, isolation_level=7), 11)


def test_fetch_limits(transcript: Transcript) -> None:
    t = transcript
    topic, _ = three_batches(t, "limits")
    for size in (0, 1, 79, 80, 150, 151, 1000, -1):
        t.call(f"partition_max_bytes {size} v2", fetch(topic, 0, max_bytes=size), 2)
        t.call(f"partition_max_bytes {size} v11", fetch(topic, 0, max_bytes=size), 11)
    for size in (0, 1, 100, 1000):
        t.call(f"max_bytes {size}", fetch(topic, 0, max_bytes=size), 11)
    wide, _ = create(t, "wide", 3)
    for partition in range(3):
        append(t, wide, batch(b"%d" % partition * 100), partition=partition)
    asked = [{"partition": p, "fetch_offset": 0, "partition_max_bytes": 1000} for p in range(3)]
    for size in (0, 100, 300, 1000):
        topics = [{"topic": wide, "partitions": asked}]
        t.call(
            f"three partitions, {size}",
            build(ApiKey.FETCH, max_wait_ms=9, min_bytes=1, max_bytes=size, topics=topics),
            11,
        )
    t.call("nothing asked", build(ApiKey.FETCH, max_wait_ms=9, min_bytes=1), 11)
    t.call("nothing asked v17", build(ApiKey.FETCH, max_wait_ms=9, min_bytes=1), 17)
    twice = [{"topic": topic, "partitions": [asked[0], asked[0]]}, {"topic": topic, "partitions": [asked[0]]}]
    t.call("a partition three times", build(ApiKey.FETCH, max_wait_ms=9, min_bytes=1, topics=twice), 11)
    t.call("min_bytes 0", fetch(topic, 6, min_bytes=0, max_wait_ms=30_000), 11)
    t.call("min_bytes never reached", fetch(topic, 0, min_bytes=1 << 20, max_wait_ms=20), 11)
    t.call("negative wait", fetch(topic, 6, max_wait_ms=-1), 11)


def test_a_limit_below_zero(transcript: Transcript) -> None:
    """It is an error where records would be read; one of the whole request, in its first partition alone."""
    t = transcript
    topic, _ = three_batches(t, "limited")
    other, _ = create(t, "other")
    append(t, other, batch(b"v"))
    for version in (3, 11):
        t.call(f"records v{version}", fetch(topic, 0, max_bytes=-1), version)
        t.call(f"the end v{version}", fetch(topic, 6, max_bytes=-1, max_wait_ms=0), version)
        t.call(f"beyond the end v{version}", fetch(topic, 99, max_bytes=-1), version)

        def both(offset: int) -> Request:
            asked = {"partition": 0, "partition_max_bytes": 1 << 20}
            topics = [
                {"topic": topic, "partitions": [{**asked, "fetch_offset": offset}]},
                {"topic": other, "partitions": [{**asked, "fetch_offset": 0}]},
            ]
            return build(ApiKey.FETCH, max_wait_ms=0, min_bytes=1, max_bytes=-1, topics=topics)

        t.call(f"two v{version}", both(0), version)
        t.call(f"the first beyond its end v{version}", both(99), version)
        t.call(f"the first at its end v{version}", both(6), version)
    t.call("another epoch", fetch(topic, 0, max_bytes=-1, p_current_leader_epoch=5), 11)


def test_conversion_is_forbidden(transcript: Transcript) -> None:
    t = transcript
    topic, _ = create(t, "unconverted", message_downconversion_enable="false")
    append(t, topic, batch(b"v"))
    for version in (1, 3, 4):
        for offset in (0, 1, 2):
            t.call(f"offset {offset} v{version}", fetch(topic, offset), version)


def test_null_records(transcript: Transcript) -> None:
    """Of batches and topics that a version has no codec for; a partition with any other error has empty records."""
    t = transcript
    topic, _ = create(t, "any")
    append(t, topic, batch(b"v", compression_type=CompressionType.ZSTD))
    only, _ = create(t, "zstd", compression_type="zstd")
    for version in (1, 3, 9):
        for label, name in {"batch": topic, "topic": only}.items():
            for offset in (0, 9):
                answer: Any = t.quietly(fetch(name, offset), version)
                [[data]] = [found.partitions for found in answer.responses]
                noted: dict[str, Plain] = {"error_code": data.error_code, "is_null": data.records is None}
                t.note(f"{label} at {offset} v{version}", noted)


def test_fetch_sessions(transcript: Transcript) -> None:
    t = transcript
    topic, _ = three_batches(t, "session")
    other, _ = create(t, "other")
    opened = t.call("opened", fetch(topic, 0, session_epoch=0), 11)
    assert opened is not None
    session: int = opened.session_id

    def incremental(label: str, epoch: int, topics: list[object], **fields: object) -> None:
        request = build(
            ApiKey.FETCH,
            max_wait_ms=30,
            min_bytes=1,
            session_id=session,
            session_epoch=epoch,
            topics=topics,
            **fields,
        )
        t.call(label, request, 11)

    def at(name: str, offset: int, partition: int = 0) -> dict[str, object]:
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        return {"topic": name, "partitions": [asked]}

    incremental("nothing new asked: the same offset again", 1, [])
    incremental("at the end", 2, [at(topic, 6)])
    incremental("another partition", 3, [at(other, 0)])
    append(t, topic, batch(b"new"))
    incremental("only what has news", 4, [])
    incremental("again, unmoved", 5, [])
    incremental("moved on", 6, [at(topic, 7)])
    incremental("nothing", 7, [])
    incremental("one forgotten", 8, [], forgotten_topics_data=[{"topic": topic, "partitions": [0]}])
    append(t, topic, batch(b"unseen"))
    incremental("the forgotten one is silent", 9, [])
    incremental("an unknown partition", 10, [at(other, 0, 9)])
    incremental("still unknown", 11, [])
    incremental("wrong epoch", 5, [])
    incremental("the right one still works", 12, [])
    t.call("unknown session", fetch(topic, 0, session_id=session + 1, session_epoch=1), 11)
    t.call("closed by a final full fetch", fetch(topic, 7, session_id=session, session_epoch=-1), 11)
    incremental("gone", 13, [])
    t.call("session 0, epoch -1: no session", fetch(topic, 6, session_epoch=-1), 11)
    t.call("session epoch 0 without an id, v7", fetch(topic, 6, session_epoch=0), 7)


def list_offsets(topic: str, timestamp: int, *, partition: int = 0, **fields: object) -> Request:
    in_partition = {name[2:]: fields.pop(name) for name in list(fields) if name.startswith("p_")}
    asked = {"partition_index": partition, "timestamp": timestamp, **in_partition}
    return build(
        ApiKey.LIST_OFFSETS, **{"replica_id": -1, "topics": [{"name": topic, "partitions": [asked]}], **fields}
    )


def test_list_offsets(transcript: Transcript) -> None:
    t = transcript
    topic, _ = three_batches(t, "offsets")
    empty, _ = create(t, "empty")
    for version in range(10):
        for label, timestamp in {
            "earliest": EARLIEST,
            "latest": LATEST,
            "the highest timestamp": MAX_TIMESTAMP,
            "earliest local": EARLIEST_LOCAL,
            "latest tiered": LATEST_TIERED,
            "unknown name": -6,
            "a time": OLD + 1,
            "a time before": OLD - 5,
            "a time after": OLD + 50,
        }.items():
            t.call(f"{label} v{version}", list_offsets(topic, timestamp), version)
    for label, timestamp in {"earliest": -2, "latest": -1, "the highest timestamp": -3, "a time": OLD}.items():
        t.call(f"{label} of an empty log", list_offsets(empty, timestamp), 7)
    t.sweep("several, v0 only", (0,), lambda _: list_offsets(topic, -1, p_max_num_offsets=5))
    t.call("none, v0", list_offsets(topic, -1, p_max_num_offsets=0), 0)
    missing = t.name("missing")
    for version in (0, 1, 4, 9):
        t.call(f"unknown topic v{version}", list_offsets(missing, -1), version)
        t.call(f"unknown partition v{version}", list_offsets(topic, -1, partition=3), version)
    for epoch in (-1, 0, 1):
        t.call(f"leader epoch {epoch}", list_offsets(topic, -1, p_current_leader_epoch=epoch), 5)
    t.call("read committed", list_offsets(topic, -1, isolation_level=1), 5)
    t.call("isolation level 9", list_offsets(topic, -1, isolation_level=9), 5)
    t.call("debugging", list_offsets(topic, -1, replica_id=-2), 5)
    t.call("as a replica", list_offsets(topic, -1, replica_id=5), 5)
    partition = {"partition_index": 0, "timestamp": -1}
    for version in (0, 1, 9):
        for label, topics in {
            "no topics": [],
            "no partitions": [{"name": topic, "partitions": []}],
            "a partition twice": [{"name": topic, "partitions": [partition, partition]}],
            "a topic twice": [{"name": topic, "partitions": [partition]}] * 2,
        }.items():
            t.call(f"{label} v{version}", build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=topics), version)


def test_list_offsets_of_records_without_timestamps(transcript: Transcript) -> None:
    t = transcript
    topic, _ = create(t, "timeless")
    for _ in range(2):
        append(t, topic, bytes(build_batch([SimpleRecord(-1, None, b"a"), SimpleRecord(-1, None, b"b")])))
    for label, timestamp in {"the highest": MAX_TIMESTAMP, "a time": OLD, "zero": 0, "earliest": EARLIEST}.items():
        t.call(label, list_offsets(topic, timestamp), 7)
    append(t, topic, batch(b"dated"))
    t.call("one has a timestamp", list_offsets(topic, MAX_TIMESTAMP), 7)


def test_offset_for_leader_epoch(transcript: Transcript) -> None:
    t = transcript
    topic, _ = three_batches(t, "epochs")
    empty, _ = create(t, "empty")

    def ask(label: str, name: str, version: int, partition: int = 0, **epochs: int) -> None:
        topics = [{"topic": name, "partitions": [{"partition": partition, **epochs}]}]
        fields = {"replica_id": -1} if version > 2 else {}
        t.call(f"{label} v{version}", build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=topics, **fields), version)

    for version in range(5):
        for epoch in (-1, 0, 1, 7):
            ask(f"epoch {epoch}", topic, version, leader_epoch=epoch)
        ask("empty log", empty, version, leader_epoch=0)
        ask("unknown topic", "no-such-topic", version, leader_epoch=0)
        ask("unknown partition", topic, version, 9, leader_epoch=0)
    for current in (0, 1):
        ask(f"current epoch {current}", topic, 3, leader_epoch=0, current_leader_epoch=current)
    t.call("no topics", build(ApiKey.OFFSET_FOR_LEADER_EPOCH, replica_id=-1), 3)


def test_delete_records(transcript: Transcript) -> None:
    t = transcript
    topic, _ = three_batches(t, "deleted")

    def delete(label: str, offset: int, name: str = topic, partition: int = 0, version: int = 2) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": partition, "offset": offset}]}]
        t.call(label, build(ApiKey.DELETE_RECORDS, topics=topics, timeout_ms=3000), version)

    delete("inside the first batch", 1)
    t.call("fetch below the start", fetch(topic, 0), 11)
    t.call("fetch at the start: the whole batch", fetch(topic, 1), 11)
    t.call("earliest", list_offsets(topic, EARLIEST), 5)
    t.call("a time before the start", list_offsets(topic, OLD), 5)
    delete("again, lower", 0)
    delete("v0", 2, version=0)
    delete("v1", 3, version=1)
    delete("beyond the high watermark", 7)
    delete("offset -2", -2)
    delete("unknown partition", 1, partition=4)
    delete("unknown topic", 1, t.name("missing"))
    delete("internal topic", 1, "__consumer_offsets")
    compacted, _ = create(t, "compacted", cleanup_policy="compact")
    append(t, compacted, batch(b"v", key=b"k"))
    delete("a compacted topic", 1, compacted)
    both, _ = create(t, "both", cleanup_policy="compact,delete")
    append(t, both, batch(b"v", key=b"k"))
    delete("compacted and deleted", 1, both)
    delete("everything", -1)
    t.call("fetch after everything", fetch(topic, 6), 11)
    twice = [{"name": topic, "partitions": [{"partition_index": 0, "offset": -1}] * 2}] * 2
    t.call("twice", build(ApiKey.DELETE_RECORDS, topics=twice, timeout_ms=100), 2)
    t.call("none", build(ApiKey.DELETE_RECORDS, timeout_ms=100), 2)
