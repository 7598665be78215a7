"""What Apache Kafka answers to Produce, good and bad, in every version; and what is in the log afterwards."""

from __future__ import annotations

import struct

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.checksum import crc32c
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import OLD, batch, build, message_set

pytestmark = pytest.mark.oracle

VERSIONS = range(12)
MAGIC_POSITION, CRC_POSITION, COUNT_POSITION = 16, 17, 57


def produce(topic: str, records: bytes | None, *, acks: int = -1, partition: int = 0, **fields: object) -> Request:
    partitions = [{"index": partition, "records": records}]
    data = [{"name": topic, "partition_data": partitions}]
    return build(ApiKey.PRODUCE, acks=acks, timeout_ms=5000, topic_data=data, **fields)


def fetch_all(t: Transcript, label: str, topic: str, version: int = 11) -> None:
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    fetch = build(ApiKey.FETCH, max_wait_ms=100, min_bytes=1, topics=[{"topic": topic, "partitions": partitions}])
    t.call(label, fetch, version)


def create(t: Transcript, stem: str, partitions: int = 1, **configs: str) -> str:
    """A new topic with configs (`_` stands for `.`)."""
    topic = t.name(stem)
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    new = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    return topic


def test_every_version(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "modern")
    t.sweep("magic 2", range(3, 12), lambda version: produce(topic, batch(b"v%d" % version)))
    fetch_all(t, "the log", topic)
    legacy = create(t, "legacy")
    t.sweep("magic 0", range(3), lambda version: produce(legacy, message_set(0, b"v%d" % version)))
    t.sweep("magic 1", range(3), lambda version: produce(legacy, message_set(1, b"v%d" % version, b"two", key=b"k")))
    t.sweep("magic 1 gzip", range(3), lambda version: produce(legacy, message_set(1, b"a", b"b", compression_type=1)))
    for version in (0, 1, 2, 3, 4):
        fetch_all(t, f"the log of message sets, fetched in v{version}", legacy, version)


def test_magic_and_version_must_agree(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "magic")
    t.sweep("message set v0 in", VERSIONS, lambda _: produce(topic, message_set(0, b"v")))
    t.sweep("message set v1 in", VERSIONS, lambda _: produce(topic, message_set(1, b"v")))
    t.sweep("magic 2 in", range(3), lambda _: produce(topic, batch(b"v")))
    t.sweep("two batches in", (3, 7, 11), lambda _: produce(topic, batch(b"1") + batch(b"2", base_offset=1)))
    t.sweep("zstd in", VERSIONS, lambda _: produce(topic, batch(b"zstd", compression_type=4)))
    t.sweep("lz4 in", (3, 11), lambda _: produce(topic, batch(b"lz4", compression_type=3)))
    fetch_all(t, "the log", topic, 12 - 1)


def test_topics_and_partitions(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "known", 2)
    missing = t.name("missing")
    t.sweep("unknown topic", VERSIONS, lambda v: produce(missing, batch(b"v") if v > 2 else message_set(1, b"v")))
    t.sweep("unknown partition", (3, 9, 11), lambda _: produce(topic, batch(b"v"), partition=2))
    t.call("negative partition", produce(topic, batch(b"v"), partition=-1), 9)
    for name in ("", ".", "..", "a b", "x" * 250, "é"):
        t.call(f"topic name {name!r}", produce(name, batch(b"v")), 9)
    for internal in ("__consumer_offsets", "__transaction_state"):
        t.call(f"internal topic {internal}", produce(internal, batch(b"v", key=b"k")), 9)
    good = {"index": 0, "records": batch(b"good")}
    bad = {"index": 7, "records": batch(b"bad")}
    data = [{"name": topic, "partition_data": [good, bad]}]
    t.call("good and bad partition", build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data), 9)
    data = [{"name": topic, "partition_data": [good]}, {"name": missing, "partition_data": [good]}]
    t.call("good and bad topic", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    data = [{"name": topic, "partition_data": [good]}, {"name": topic, "partition_data": [good]}]
    t.call("topic twice", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    data = [{"name": topic, "partition_data": [good, good]}]
    t.call("partition twice", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    data = [{"name": topic, "partition_data": []}]
    t.call("topic without partitions", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    t.call("no topics", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000), 9)
    t.call("timeout 0", build(ApiKey.PRODUCE, acks=-1, timeout_ms=0, topic_data=data), 9)
    fetch_all(t, "the log", topic)


def test_acks(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "acks")
    for acks in (-1, 1, 2, -2, 127):
        t.call(f"acks {acks} v11", produce(topic, batch(b"%d" % acks), acks=acks), 11)
        t.call(f"acks {acks} v3", produce(topic, batch(b"%d" % acks), acks=acks), 3)
    t.client.send(produce(topic, batch(b"no answer"), acks=0), 9)
    fetch_all(t, "the log, on the same connection after acks 0", topic)
    t.client.send(produce(t.name("nowhere"), batch(b"no answer"), acks=0), 9)
    t.note("acks 0 to an unknown topic", "closed" if t.client.awaits_close() else "open")
    t.disconnect()
    strict = create(t, "strict", min_insync_replicas="2")
    for acks in (-1, 1):
        t.call(f"too few replicas, acks {acks}", produce(strict, batch(b"v"), acks=acks), 9)


def test_records_that_are_wrong(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "wrong")
    good = batch(b"value", b"two")

    def patched(position: int, data: bytes) -> bytes:
        return good[:position] + data + good[position + len(data) :]

    cases = {
        "empty": b"",
        "truncated": good[:-1],
        "only a header": good[:61],
        "less than a header": good[:12],
        "a zero byte": b"\0",
        "trailing garbage": good + b"garbage",
        "wrong crc": patched(CRC_POSITION, b"\0\0\0\0"),
        "magic 3": patched(MAGIC_POSITION, b"\x03"),
        "magic -1": patched(MAGIC_POSITION, b"\xff"),
        "length too large": patched(8, struct.pack(">i", 5000)),
        "length too small": patched(8, struct.pack(">i", 10)),
        "length negative": patched(8, struct.pack(">i", -1)),
        "base offset not 0": batch(b"v", base_offset=5),
        "epoch given": batch(b"v", partition_leader_epoch=9),
        "control batch": batch(b"\0\0\0\0\0\0", key=b"\0\0\0\1", is_control=True, producer_id=1, producer_epoch=0),
        "transactional without an id": batch(
            b"v", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0
        ),
        "log append time claimed": batch(b"v", timestamp_type=1, log_append_time=1_600_000_000_000),
        "unknown codec": patched(21, struct.pack(">h", 7)),
    }
    for label, records in cases.items():
        t.call(label, produce(topic, records), 9)
    t.call("good", produce(topic, good), 9)
    fetch_all(t, "the log", topic)


def test_what_the_header_says_about_time(transcript: Transcript) -> None:
    """Whatever it says, the batch that is fetched has the largest timestamp of its records, and a CRC that agrees."""
    t = transcript
    topic = create(t, "dated")
    claims = {"-1": -1, "0": 0, "the first record's": OLD, "what is in the future": 9_999_999_999_999}
    for codec in (0, 1, 2, 3, 4):
        for label, claimed in claims.items():
            sent = RecordBatch(memoryview(batch(b"a", b"b", b"c", compression_type=codec)))
            records = sent.header(max_timestamp=claimed) + bytes(sent.payload)
            t.call(f"codec {codec}, max timestamp {label}", produce(topic, records), 9)
    fetch_all(t, "the log", topic)
    for timestamp in (OLD, OLD + 2, OLD + 3, -3):
        asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        topics = [{"name": topic, "partitions": [asked]}]
        t.call(f"offset at {timestamp}", build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=topics), 7)


def test_topic_settings(transcript: Transcript) -> None:
    t = transcript
    compacted = create(t, "compacted", cleanup_policy="compact")
    t.call("no key, compacted", produce(compacted, batch(b"v", b"w")), 9)
    t.call("no key, compacted, old version", produce(compacted, batch(b"v")), 7)
    t.call("key, compacted", produce(compacted, batch(b"v", key=b"k")), 9)
    small = create(t, "small", max_message_bytes="100")
    t.call("at the limit", produce(small, batch(b"x" * 31)), 9)
    for size in (32, 33, 1000):
        t.call(f"value of {size} bytes", produce(small, batch(b"x" * size)), 9)
    segment = create(t, "segment", segment_bytes="1024")
    t.call("larger than a segment", produce(segment, batch(b"x" * 2000)), 9)
    for kind, limit in (("before", "message_timestamp_before_max_ms"), ("after", "message_timestamp_after_max_ms")):
        topic = create(t, kind, **{limit: "1000"})
        t.call(f"old record, {kind} limit", produce(topic, batch(b"1", b"2")), 9)
    uncompressed = create(t, "uncompressed", compression_type="uncompressed")
    t.call("gzip to a topic without compression", produce(uncompressed, batch(b"a", b"b", compression_type=1)), 9)
    fetch_all(t, "the log is not compressed", uncompressed)
    append_time = create(t, "append-time", message_timestamp_type="LogAppendTime")
    t.call("log append time", produce(append_time, batch(b"v")), 9)
    t.call("log append time v1", produce(append_time, message_set(1, b"v")), 1)
    t.call("log append time v2", produce(append_time, message_set(1, b"v")), 2)


def test_idempotence(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "idempotent")
    new = t.until_accepted(build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=0), 4)
    producer_id: int = new.producer_id

    def send(label: str, sequence: int, *values: bytes, epoch: int = 0, pid: int = producer_id) -> None:
        records = batch(*values, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        t.call(label, produce(topic, records), 9)

    send("first", 0, b"a", b"b")
    send("second", 2, b"c")
    send("second again: a duplicate", 2, b"c")
    send("first again: a duplicate", 0, b"a", b"b")
    send("overlap", 1, b"x")
    send("gap", 5, b"x")
    send("third", 3, b"d")
    for number in range(4, 9):
        send(f"number {number}", number, b"n")
    send("first once more: forgotten", 0, b"a", b"b")
    send("new epoch not from 0", 9, b"x", epoch=1)
    send("new epoch", 0, b"e1", epoch=1)
    send("old epoch", 9, b"x", epoch=0)
    send("unknown producer from 0", 0, b"u", pid=987_654)
    send("unknown producer not from 0", 3, b"u", pid=987_655)
    for label, options in {
        "negative sequence": {"producer_id": producer_id, "producer_epoch": 1, "base_sequence": -1},
        "negative epoch": {"producer_id": producer_id, "producer_epoch": -1, "base_sequence": 1},
    }.items():
        header = bytearray(batch(b"v"))
        values = (options["producer_id"], options["producer_epoch"], options["base_sequence"])
        header[43:57] = struct.pack(">qhi", *values)
        header[CRC_POSITION : CRC_POSITION + 4] = struct.pack(">I", crc32c(bytes(header[21:])))
        t.call(label, produce(topic, bytes(header)), 9)
    t.sweep(
        "InitProducerId",
        range(6),
        lambda _: build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=5),
    )
    t.call("InitProducerId, empty id", build(ApiKey.INIT_PRODUCER_ID, transactional_id="", transaction_timeout_ms=5), 4)
    t.call(
        "InitProducerId with an epoch and no id",
        build(
            ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=5, producer_id=3, producer_epoch=1
        ),
        4,
    )
