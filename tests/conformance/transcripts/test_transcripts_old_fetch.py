"""What Apache Kafka sends to consumers of Fetch v0-3, byte by byte: records converted while they are sent.

The whole answer counts: its announced size, what is cut off, and what fills the room that conversion leaves.
"""

from __future__ import annotations

import hashlib

import pytest

from odradek.protocol.api import ApiKey
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

ZSTD = 4


def create(t: Transcript, stem: str, *batches: bytes) -> str:
    """A new topic with these batches in it."""
    topic = t.name(stem)
    new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    for records in batches:
        data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
        answer = t.quietly(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return topic


def fetch(t: Transcript, label: str, topic: str, offset: int, max_bytes: int) -> None:
    """Note how many bytes of records come in each version, how they begin and end, and which they are."""
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    for version in range(4):
        request = build(ApiKey.FETCH, max_wait_ms=50, min_bytes=1, topics=[{"topic": topic, "partitions": [asked]}])
        [answer] = t.quietly(request, version).responses[0].partitions
        records = bytes(answer.records or b"")
        t.note(
            f"{label} v{version}",
            {
                "error_code": answer.error_code,
                "high_watermark": answer.high_watermark,
                "size": len(records),
                "ends": records[-40:].hex(),
                "digest": hashlib.sha256(records).hexdigest(),
            },
        )


def filled(size: int, first: int = 0) -> bytes:
    """A batch of records of a hundred bytes, together about `size` bytes."""
    return batch(*(b"%d " % (first + number) + b"." * 95 for number in range(size // 110)))


def test_much_of_it(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "many", *(filled(50_000, 1000 * number) for number in range(30)))
    fetch(t, "a megabyte", topic, 0, 1 << 20)
    fetch(t, "all of it", topic, 0, 1 << 22)
    fetch(t, "from inside a batch", topic, 700, 300_000)
    fetch(t, "one batch and a half", topic, 0, 75_000)
    fetch(t, "half a batch", topic, 0, 25_000)


def test_batches_that_shrink(transcript: Transcript) -> None:
    """Headers are lost; what is left is filled, over and over if it is more than a piece."""
    t = transcript
    large = create(t, "large", batch(b"x" * 200_000), batch(b"y" * 200_000), filled(50_000))
    fetch(t, "pieces larger than a piece", large, 0, 1 << 20)
    fetch(t, "a part of the second", large, 0, 300_000)
    fetch(t, "within the first", large, 0, 100_000)


def test_a_codec_that_cannot_be_told(transcript: Transcript) -> None:
    t = transcript
    zstd = filled(60_000)
    packed = batch(b"z" * 50_000, compression_type=ZSTD)
    near = create(t, "near", zstd, zstd, packed, zstd)
    fetch(t, "behind two batches", near, 0, 1 << 20)
    far = create(t, "far", *[zstd] * 4, packed, zstd)
    fetch(t, "in the second piece", far, 0, 1 << 20)
    only = create(t, "only", packed)
    fetch(t, "first", only, 0, 1 << 20)
