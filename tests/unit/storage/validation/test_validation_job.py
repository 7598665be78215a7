"""A validation in a worker process, and its result at the append, beside the validation in one call."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin, RecordValidationError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.validation_cost import LongValidationError, check_separation
from odradek.storage.validation.validation_job import FinishedValidation, Refusal, ValidationJob, assign, validate
from odradek.storage.validation.validation_rules import ValidatedBatch, ValidationRules
from odradek.storage.validation.validator import analyze, validate_and_assign
from tests.support.disks.logs import NOW, batch

CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
OLD = {0: "0.9.0", 1: "0.10.0", 2: "3.0"}
END, EPOCH = 1_000, 7


def rules(magic: int = 2, **overrides: str) -> ValidationRules:
    texts = {name.replace("_", "."): value for name, value in overrides.items()}
    broker = {"inter.broker.protocol.version": "2.8"} if magic < 2 else {}
    if magic < 2:
        texts["message.format.version"] = OLD[magic]
    return ValidationRules.of_config(LogConfig.from_props(broker, texts), TopicPartition("t", 0))


def in_worker(records: bytes | memoryview, used: ValidationRules, next_offset: int = END) -> FinishedValidation:
    """The job and its result as they come through the pipes of a worker process."""
    job = ValidationJob(bytes(records), used, next_offset, NOW)
    result = pickle.loads(pickle.dumps(validate(pickle.loads(pickle.dumps(job)), lambda _: None)))
    return FinishedValidation(job, result)


def at_the_append(
    finished: FinishedValidation, used: ValidationRules, end: int = END, now: int = NOW
) -> ValidatedBatch:
    records = memoryview(finished.job.records)
    return assign(finished, records, used, next_offset=end, leader_epoch=EPOCH, now_ms=now)


def in_one_call(records: bytes | memoryview, used: ValidationRules, end: int = END, now: int = NOW) -> ValidatedBatch:
    found = analyze(memoryview(records), used, AppendOrigin.CLIENT)
    return validate_and_assign(
        found, used, AppendOrigin.CLIENT, next_offset=end, leader_epoch=EPOCH, now_ms=now, may_take_long=True
    )


def stored(validated: ValidatedBatch) -> tuple[object, ...]:
    """All but the time that it took."""
    same = validated._replace(conversion_ns=0)
    return (b"".join(validated.parts), *same[2:], validated.batch.producer_id, validated.batch.base_sequence)


def test_the_worker_says_how_long_the_conversion_took() -> None:
    used = rules(compression_type="gzip")
    records = bytes(batch(b"value"))
    assert at_the_append(in_worker(records, used), used, END).conversion_ns > 0
    assert in_one_call(records, used).conversion_ns == 0, "it has no clock"


@given(
    codec=st.sampled_from(CODECS),
    source=st.sampled_from(CompressionType),
    magic=st.sampled_from([0, 1, 2]),
    append_time=st.booleans(),
    compact=st.booleans(),
    target_magic=st.sampled_from([0, 1, 2]),
    moved=st.integers(0, 5),
)
def test_result_is_that_of_one_call(
    codec: str, source: int, magic: int, append_time: bool, compact: bool, target_magic: int, moved: int
) -> None:
    used = rules(
        target_magic,
        compression_type=codec,
        message_timestamp_type="LogAppendTime" if append_time else "CreateTime",
        cleanup_policy="compact" if compact else "delete",
    )
    values = [b"value %d" % number for number in range(5)]
    if magic == 2:
        records = bytes(batch(*values, compression=source, producer_id=5, producer_epoch=1, base_sequence=3))
    else:
        if source == CompressionType.ZSTD:
            return
        simple = [SimpleRecord(NOW + number, b"k", value) for number, value in enumerate(values)]
        records = build_messages(simple, magic, compression_type=source)
    finished = in_worker(records, used)
    expected: tuple[object, ...] | str
    try:
        expected = stored(in_one_call(records, used, END + moved, NOW))
    except KafkaError as error:
        expected = repr(error)
    actual: tuple[object, ...] | str
    try:
        actual = stored(at_the_append(finished, used, END + moved))
    except KafkaError as error:
        actual = repr(error)
    except LongValidationError:
        assert moved
        assert target_magic == 0, "only there offsets are inside a wrapper"
        return
    assert actual == expected


def test_log_append_time_is_that_of_the_append() -> None:
    used = rules(compression_type="gzip", message_timestamp_type="LogAppendTime")
    finished = in_worker(batch(b"a", b"b"), used)
    assert stored(at_the_append(finished, used, END + 3, NOW + 250)) == stored(
        in_one_call(batch(b"a", b"b"), used, END + 3, NOW + 250)
    )
    assert at_the_append(finished, used, now=NOW + 250).log_append_time == NOW + 250


def test_levels_of_codecs_reach_the_worker() -> None:
    values = [b'{"id": %d, "name": "name %d"}' % (number, number * 7919 % 1000) for number in range(300)]
    sizes = {
        level: at_the_append(in_worker(batch(*values), used), used).size
        for level in ("1", "9")
        for used in [rules(compression_type="gzip", compression_gzip_level=level)]
    }
    assert sizes["9"] < sizes["1"]


def test_refusals_are_raised_at_the_append() -> None:
    used = rules(compression_type="zstd", cleanup_policy="compact")
    finished = in_worker(batch(b"a", b"b", key=None), used)
    assert isinstance(finished.result, Refusal)
    with pytest.raises(RecordValidationError) as invalid:
        at_the_append(finished, used)
    assert invalid.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in invalid.value.record_errors] == [0, 1]

    opened = rules(compression_type="gzip")
    broken = bytearray(batch(b"a" * 100, compression=CompressionType.ZSTD))
    broken[61:65] = b"\0\0\0\0"
    header = RecordBatch(memoryview(broken))
    header.attributes ^= 8  # a change, so that the CRC is computed anew
    broken[:61] = header.header(timestamp_type=0)
    with pytest.raises(KafkaError) as corrupt:
        at_the_append(in_worker(bytes(broken), opened), opened)
    assert corrupt.value.code is ErrorCode.INVALID_RECORD


def test_result_for_other_rules_does_not_hold() -> None:
    used = rules(compression_type="gzip")
    finished = in_worker(batch(b"a"), used)
    at_the_append(finished, replace(used))
    with pytest.raises(LongValidationError):
        at_the_append(finished, rules(compression_type="zstd"))


def test_wrapper_of_v0_fits_only_where_it_was_made_for() -> None:
    used = rules(0, compression_type="gzip")
    finished = in_worker(batch(b"a", b"b"), used)
    assert stored(at_the_append(finished, used)) == stored(in_one_call(batch(b"a", b"b"), used))
    with pytest.raises(LongValidationError):
        at_the_append(finished, used, END + 1)


def test_part_of_a_batch_at_the_end_is_ignored() -> None:
    used = rules(cleanup_policy="compact")
    records = bytes(batch(b"a")) + bytes(batch(b"b"))[:30]
    assert stored(at_the_append(in_worker(records, used), used)) == stored(in_one_call(batch(b"a"), used))


def test_many_batches_are_separated_by_a_worker() -> None:
    single = bytes(batch(bytes(70_000)))
    check_separation(memoryview(single))
    with pytest.raises(LongValidationError):
        analyze(memoryview(single + bytes(batch(b"a"))), rules(), AppendOrigin.CLIENT, may_take_long=False)
    small = build_messages([SimpleRecord(NOW, None, bytes(1000))] * 2, 1)
    check_separation(memoryview(small))
    with pytest.raises(LongValidationError):
        check_separation(memoryview(small * 40))
