"""The checks of a leader, and its assignment of offsets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch, build_batch
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.storage.append_info import AppendOrigin, RecordValidationError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.validation_rules import ValidatedBatch, ValidationRules
from odradek.storage.validation.validator import analyze, validate_and_assign
from tests.support.disks.logs import NOW, batch, marker

CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION
GZIP, SNAPPY, LZ4, ZSTD = CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD


def rules(always: bool = False, **overrides: str) -> ValidationRules:
    config = LogConfig.from_props({}, {name.replace("_", "."): value for name, value in overrides.items()})
    return ValidationRules.of_config(config, "t-0", validate_all=always)


def validate(
    data: memoryview | bytes | bytearray, rules_: ValidationRules | None = None, origin: AppendOrigin = CLIENT
) -> ValidatedBatch:
    used = rules_ or rules()
    found = analyze(memoryview(data), used, origin)
    return validate_and_assign(found, used, origin, next_offset=100, leader_epoch=7, now_ms=NOW)


def stored(validated: ValidatedBatch) -> RecordBatch:
    result = RecordBatch(memoryview(b"".join(validated.parts)))
    assert result.is_valid()
    assert len(result.buffer) == validated.size
    assert (result.base_offset, result.last_offset) == (validated.first_offset, validated.last_offset)
    assert result.partition_leader_epoch == 7
    return result


def header(**changes: int) -> bytearray:
    fields = {
        "record_count": 1,
        "base_offset": 0,
        "last_offset_delta": 0,
        "base_timestamp": NOW,
        "max_timestamp": NOW,
        "attributes": 0,
    }
    return assemble_batch(RecordBatch(batch(b"v")).payload, **{**fields, **changes})


# -- analysis -----------------------------------------------------------


def test_corrupt_batch() -> None:
    data = bytearray(batch(b"value"))
    data[-1] ^= 1
    with pytest.raises(KafkaError) as error:
        validate(data)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_size_limit_has_two_sides() -> None:
    data = batch(b"value")
    validate(data, rules(max_message_bytes=str(len(data))))
    with pytest.raises(KafkaError) as error:
        validate(data, rules(max_message_bytes=str(len(data) - 1)))
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert analyze(data, rules(max_message_bytes="1"), REPLICATION)


def test_client_batches_begin_at_offset_0() -> None:
    with pytest.raises(KafkaError) as error:
        validate(batch(b"v", base_offset=3))
    assert error.value.code is ErrorCode.INVALID_RECORD
    assert stored(validate(batch(b"v", base_offset=3), origin=COORDINATOR)).base_offset == 100


def test_garbage_is_refused_or_left_out() -> None:
    assert analyze(memoryview(b"\x00" * 11), rules(), CLIENT) == []
    with pytest.raises(CorruptRecordError):
        analyze(memoryview(b"\xff" * 100), rules(), CLIENT)


# -- the batch -----------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: header(last_offset_delta=-1), "invalid offset range"),
        (lambda: header(record_count=0), "Invalid reported count for record batch: 0"),
        (lambda: header(record_count=2), "Inconsistent batch offset range"),
        (lambda: header(producer_id=5, producer_epoch=0), "Invalid sequence number -1"),
        (lambda: marker(ControlRecordType.ABORT, producer_id=5), "not allowed to write control records"),
        (lambda: bytes(batch(b"a")) + bytes(batch(b"b")), "more than one batch"),
        (lambda: header(attributes=5), "Unknown compression type id: 5"),
    ],
)
def test_refused_batches(data: Callable[[], bytes], message: str) -> None:
    with pytest.raises(KafkaError, match=message) as error:
        validate(data())
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_magics_are_not_mixed() -> None:
    old = build_messages([SimpleRecord(NOW, b"k", b"v")], 1)
    with pytest.raises(KafkaError, match="magic"):
        validate(old + build_messages([SimpleRecord(NOW, b"k", b"v")], 0))


def test_coordinator_may_write_control_batches() -> None:
    validated = validate(marker(ControlRecordType.COMMIT, producer_id=5), rules(compression_type="zstd"), COORDINATOR)
    assert stored(validated).is_control
    assert stored(validated).compression_type == 0, "control batches are never compressed"


# -- in place or rebuilt -----------------------------------------------------------


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5), st.sampled_from(CompressionType))
def test_in_place_leaves_everything_behind_the_prefix_alone(values: list[bytes], codec: CompressionType) -> None:
    data = batch(*values, compression=codec)
    validated = validate(data)
    assert bytes(stored(validated).buffer[16:]) == bytes(data[16:])
    assert (validated.first_offset, validated.last_offset) == (100, 99 + len(values))
    assert validated.max_timestamp == NOW + len(values) - 1


@pytest.mark.parametrize("source", list(CompressionType))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_another_codec_rebuilds_with_the_same_records(source: CompressionType, target: str) -> None:
    data = batch(b"a" * 50, None, b"c", compression=source, producer_id=5, producer_epoch=1, base_sequence=8)
    result = stored(validate(data, rules(compression_type=target)))
    names = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert result.compression_type == names.index(target)
    assert (result.producer_id, result.producer_epoch, result.base_sequence) == (5, 1, 8)
    assert [(r.offset, r.timestamp, r.value) for r in result.records()] == [
        (100, NOW, b"a" * 50),
        (101, NOW + 1, None),
        (102, NOW + 2, b"c"),
    ]


def test_rebuilt_batch_must_fit_too() -> None:
    data = batch(b"a" * 5000, compression=GZIP)
    with pytest.raises(KafkaError) as error:
        validate(data, rules(compression_type="uncompressed", max_message_bytes="1000"))
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, GZIP, SNAPPY, LZ4])
def test_old_messages_become_one_batch_of_magic_2(magic: int, codec: CompressionType) -> None:
    old = build_messages([SimpleRecord(NOW + n, b"k", b"%d" % n) for n in range(3)], magic, compression_type=codec)
    result = stored(validate(old))
    assert (result.magic, result.compression_type, result.record_count) == (2, codec, 3)
    assert [r.value for r in result.records()] == [b"0", b"1", b"2"]
    assert result.max_timestamp == (-1 if magic == 0 else NOW + 2)


def test_gaps_in_compressed_offsets_are_closed_when_records_are_walked() -> None:
    gappy = build_batch(
        [Record(0, NOW, b"k", b"a"), Record(2, NOW, b"k", b"b"), Record(3, NOW, b"k", b"c")], compression_type=GZIP
    )
    counted = assemble_batch(
        RecordBatch(memoryview(gappy)).payload,
        record_count=3,
        base_offset=0,
        last_offset_delta=2,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=GZIP,
    )
    result = stored(validate(counted, rules(always=True)))
    assert [record.offset for record in result.records()] == [100, 101, 102]


# -- records -----------------------------------------------------------


@pytest.mark.parametrize("codec", [0, GZIP])
def test_attributes_of_a_record_mean_nothing(codec: int) -> None:
    """Kafka: DefaultRecord.isCompressed is always false."""
    payload = bytearray(RecordBatch(batch(b"v")).payload)
    payload[1] = 0xFF
    data = assemble_batch(
        compress(codec, payload),
        record_count=1,
        base_offset=0,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=codec,
    )
    (record,) = stored(validate(data, rules(always=True))).records()
    assert record.value == b"v"


def test_compacted_topic_needs_keys() -> None:
    data = memoryview(build_batch([SimpleRecord(NOW, b"k", b"v"), SimpleRecord(NOW, None, b"v")]))
    validate(data)
    with pytest.raises(RecordValidationError) as error:
        validate(data, rules(cleanup_policy="compact"))
    assert error.value.code is ErrorCode.INVALID_RECORD
    expected = "Compacted topic cannot accept message without key in topic partition t-0"
    assert error.value.record_errors == [(1, expected)]
    assert str(error.value) == (
        "One or more records have been rejected due to 1 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=1, message='{expected}')]"
    )


@pytest.mark.parametrize(
    ("timestamp", "fits"), [(NOW - 100, True), (NOW - 101, False), (NOW + 50, True), (NOW + 51, False), (-1, True)]
)
@pytest.mark.parametrize("codec", [CompressionType.NONE, GZIP])
def test_timestamp_limits_have_two_sides(timestamp: int, fits: bool, codec: CompressionType) -> None:
    limits = rules(message_timestamp_before_max_ms="100", message_timestamp_after_max_ms="50")
    data = batch(b"v", timestamp=timestamp, compression=codec)
    if fits:
        assert stored(validate(data, limits)).max_timestamp == timestamp
        return
    with pytest.raises(RecordValidationError) as error:
        validate(data, limits)
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert error.value.record_errors[0][0] == 0
    assert f"should be within [{NOW - 100}, {NOW + 50}]" in error.value.record_errors[0][1]


def test_one_bad_timestamp_among_keyless_records_decides_the_error() -> None:
    limits = rules(message_timestamp_after_max_ms="50", cleanup_policy="compact")
    data = memoryview(build_batch([SimpleRecord(NOW, None, b"v"), SimpleRecord(NOW + 99, b"k", b"v")]))
    with pytest.raises(RecordValidationError) as error:
        validate(data, limits)
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.value.record_errors] == [0, 1]


def test_append_time_replaces_the_batch_timestamp_only() -> None:
    data = batch(b"a", b"b", timestamp=5, compression=LZ4)
    validated = validate(data, rules(message_timestamp_type="LogAppendTime"))
    result = stored(validated)
    assert (result.timestamp_type, result.max_timestamp, result.base_timestamp) == (1, NOW, 5)
    assert (validated.max_timestamp, validated.log_append_time) == (NOW, NOW)
    assert bytes(result.payload) == bytes(RecordBatch(data).payload)


def append_time_batch(timestamp: int) -> bytearray:
    return build_batch([SimpleRecord(NOW, b"k", b"v")], timestamp_type=1, log_append_time=timestamp)


def test_producers_must_not_claim_append_time_where_the_broker_sets_it() -> None:
    with pytest.raises(RecordValidationError) as error:
        validate(append_time_batch(NOW), rules(message_timestamp_type="LogAppendTime"))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert "Producer should not set timestamp type to LogAppendTime" in error.value.record_errors[0][1]
    with pytest.raises(RecordValidationError):
        validate(append_time_batch(-1))


def test_claimed_append_time_becomes_create_time_on_a_create_time_topic() -> None:
    """As in LogValidator of 3.9: of a record with a timestamp, only the limits are checked."""
    result = stored(validate(append_time_batch(NOW - 3)))
    assert (result.timestamp_type, result.max_timestamp) == (0, NOW - 3)


def test_true_max_timestamp_is_found_by_a_walk() -> None:
    wrong = assemble_batch(
        RecordBatch(batch(b"v")).payload,
        record_count=1,
        base_offset=0,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW + 77,
        attributes=0,
    )
    assert stored(validate(wrong)).max_timestamp == NOW + 77, "believed: it is near the present"
    assert stored(validate(wrong, rules(always=True))).max_timestamp == NOW


def test_max_timestamp_that_is_not_trusted_is_replaced() -> None:
    honest = RecordBatch(batch(b"v", b"w"))
    wrong = honest.header(max_timestamp=0) + bytes(honest.payload)
    result = stored(validate(wrong))
    assert result.buffer[21:] == honest.buffer[21:]
    coordinators = stored(validate(wrong, origin=COORDINATOR))
    assert coordinators.max_timestamp == 0, "its own batches are left as they are"
    append_time = stored(validate(wrong, rules(message_timestamp_type="LogAppendTime")))
    assert append_time.max_timestamp == NOW


def test_malformed_records_are_found_by_a_walk() -> None:
    broken = assemble_batch(
        b"\x10\x00\x00\x00\x02k",
        record_count=1,
        base_offset=0,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=0,
    )
    with pytest.raises(CorruptRecordError):
        validate(broken, rules(always=True))


@pytest.mark.parametrize(
    ("data", "codec", "is_rebuilt"),
    [
        (batch(b"v"), "producer", False),
        (batch(b"v", compression=GZIP), "gzip", False),
        (batch(b"v"), "gzip", True),
        (batch(b"v", compression=GZIP), "uncompressed", True),
        (build_messages([SimpleRecord(NOW, None, b"v")], 1), "producer", True),
    ],
)
def test_records_that_are_written_anew(data: bytes, codec: str, is_rebuilt: bool) -> None:
    assert validate(data, rules(compression_type=codec)).is_rebuilt is is_rebuilt


def test_the_time_of_writing_records_anew() -> None:
    found = analyze(memoryview(batch(b"v")), rules(), CLIENT)
    for codec, expected_ns in (("gzip", 7), ("producer", 0)):
        now_ns = count(0, 7).__next__
        used = rules(compression_type=codec)
        built = validate_and_assign(found, used, CLIENT, next_offset=0, leader_epoch=0, now_ms=NOW, monotonic_ns=now_ns)
        assert built.conversion_ns == expected_ns
