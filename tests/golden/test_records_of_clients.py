"""Batches of two independent implementations: we read theirs, and they read ours.

aiokafka and kafka-python each bring their own record formats. Uncompressed bytes must be equal; compressed ones depend
on the compressor, so there the records are compared.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
from kafka.record.memory_records import MemoryRecordsBuilder as KafkaPythonBuilder

from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord

T = 1_700_000_000_000
LEGACY = [(CompressionType.GZIP, 0), (CompressionType.SNAPPY, 0)]
LEGACY += [
    (CompressionType.GZIP, 1),
    (CompressionType.SNAPPY, 1),
    (CompressionType.LZ4, 1),
]  # magic 0 and lz4 it refuses

payloads = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
with_headers = st.lists(
    st.builds(SimpleRecord, st.integers(T - 10**6, T + 10**6), payloads, payloads, headers), min_size=1, max_size=6
)
without_headers = st.lists(
    st.builds(SimpleRecord, st.integers(T - 10**6, T + 10**6), payloads, payloads, st.just(())), min_size=1, max_size=6
)


def ours(data: Any) -> list[Record]:
    found = list(batches(memoryview(data)))
    for batch in found:
        batch.ensure_valid()
    return [record._replace(sequence=-1) for batch in found for record in batch.records()]


def numbered(records: list[SimpleRecord]) -> list[Record]:
    return [Record(offset, *record) for offset, record in enumerate(records)]


def read_by_kafka_python(data: bytes | bytearray) -> list[Record]:
    found = []
    for batch in KafkaPythonRecords(bytes(data)):
        assert batch.validate_crc()
        found += list(batch)
    return [
        Record(record.offset, -1 if record.timestamp is None else record.timestamp, record.key, record.value,
               tuple(record.headers or ()))
        for record in found
    ]  # fmt: skip


def read_by_aiokafka(data: bytes | bytearray) -> list[Record]:
    found = []
    memory = AiokafkaRecords(bytes(data))
    while memory.has_next():
        batch = memory.next_batch()
        assert batch is not None
        assert batch.validate_crc()
        found += list(batch)
    return [
        Record(record.offset, -1 if record.timestamp is None else record.timestamp, record.key, record.value,
               tuple(record.headers or ()))
        for record in found
    ]  # fmt: skip


def written_by_kafka_python(records: list[SimpleRecord], magic: int, codec: int) -> bytes:
    builder = KafkaPythonBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for record in records:
        assert builder.append(record.timestamp, record.key, record.value, list(record.headers)) is not None
    builder.close()
    return bytes(builder.buffer())


def written_by_aiokafka(records: list[SimpleRecord], codec: int) -> bytes:
    builder = AiokafkaBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, record in enumerate(records):
        builder.append(offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def legacy_written_by_aiokafka(records: list[SimpleRecord], magic: int, codec: int) -> bytes:
    builder = AiokafkaLegacyBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset, record in enumerate(records):
        builder.append(offset, record.timestamp, record.key, record.value)
    return bytes(builder.build())


def without_leader_epoch(data: bytes | bytearray) -> bytes:
    """Clients fill the leader epoch, which the leader overwrites, with 0 or -1."""
    return bytes(data[:12]) + bytes(data[16:])


@given(with_headers)
def test_uncompressed_bytes_are_equal(records: list[SimpleRecord]) -> None:
    built = without_leader_epoch(build_batch(records))
    assert built == without_leader_epoch(written_by_kafka_python(records, 2, 0))
    assert built == without_leader_epoch(written_by_aiokafka(records, 0))


@pytest.mark.parametrize("magic", [0, 1])
@given(records=without_headers)
def test_uncompressed_legacy_bytes_are_equal(magic: int, records: list[SimpleRecord]) -> None:
    built = build_messages(records, magic)
    assert built == written_by_kafka_python(records, magic, 0)
    assert built == legacy_written_by_aiokafka(records, magic, 0)


@given(records=with_headers)
def test_aiokafka_both_ways(records: list[SimpleRecord]) -> None:
    for codec in CompressionType:
        assert ours(written_by_aiokafka(records, codec)) == numbered(records), codec
        assert read_by_aiokafka(build_batch(records, compression_type=codec)) == numbered(records), codec


@given(records=with_headers)
def test_kafka_python_both_ways(records: list[SimpleRecord]) -> None:
    """Its other codecs need packages that are not installed."""
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        assert ours(written_by_kafka_python(records, 2, codec)) == numbered(records), codec
        assert read_by_kafka_python(build_batch(records, compression_type=codec)) == numbered(records), codec


@given(records=without_headers)
def test_aiokafka_legacy_both_ways(records: list[SimpleRecord]) -> None:
    for codec, magic in LEGACY:
        expected = numbered(records)
        if magic == 0:
            expected = [record._replace(timestamp=-1) for record in expected]
        theirs = legacy_written_by_aiokafka(records, magic, codec)
        # A client leaves the wrapper's offset 0, and the leader assigns it.
        assert ours(theirs) == expected, (codec, magic)
        assert read_by_aiokafka(build_messages(records, magic, compression_type=codec)) == expected, (codec, magic)


@pytest.mark.parametrize("magic", [0, 1])
@given(records=without_headers)
def test_kafka_python_legacy_both_ways(magic: int, records: list[SimpleRecord]) -> None:
    expected = numbered(records)
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert ours(written_by_kafka_python(records, magic, CompressionType.GZIP)) == expected
    assert read_by_kafka_python(build_messages(records, magic, compression_type=CompressionType.GZIP)) == expected
