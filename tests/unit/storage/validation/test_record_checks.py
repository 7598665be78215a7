"""Checks of single records: by the summary of a batch, and record by record."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from odradek.protocol.records.legacy import LegacyBatch, build_message
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.append_info import RecordValidationError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.record_checks import RECORD_ERRORS_MAX, has_bad_records, raise_record_errors
from odradek.storage.validation.validation_rules import ValidationRules
from tests.support.disks.logs import NOW


def rules(**overrides: str) -> ValidationRules:
    config = LogConfig.from_props({}, {name.replace("_", "."): value for name, value in overrides.items()})
    return ValidationRules.of_config(config, "t-0")


COMPACTED = rules(cleanup_policy="compact")
LIMITED = rules(message_timestamp_before_max_ms="100", message_timestamp_after_max_ms="50")


def batch_of(*records: SimpleRecord) -> RecordBatch:
    return RecordBatch(memoryview(build_batch(records)))


@pytest.mark.parametrize(
    ("batch", "asked", "code"),
    [
        (batch_of(SimpleRecord(NOW, b"k", b"v")), COMPACTED, None),
        (batch_of(SimpleRecord(NOW, None, b"v")), COMPACTED, ErrorCode.INVALID_RECORD),
        (batch_of(SimpleRecord(NOW - 100, None, b"v"), SimpleRecord(NOW + 50, None, b"v")), LIMITED, None),
        (batch_of(SimpleRecord(NOW - 101, None, b"v")), LIMITED, ErrorCode.INVALID_TIMESTAMP),
        (batch_of(SimpleRecord(NOW + 51, None, b"v")), LIMITED, ErrorCode.INVALID_TIMESTAMP),
        (batch_of(SimpleRecord(-1, None, b"v")), LIMITED, None),
    ],
)
def test_the_sums_say_what_the_records_say(batch: RecordBatch, asked: ValidationRules, code: ErrorCode | None) -> None:
    assert has_bad_records(batch, batch.summary(MAX_DECOMPRESSED_BYTES), asked, NOW) is (code is not None)
    if code is None:
        raise_record_errors([batch], asked, NOW)
        return
    with pytest.raises(RecordValidationError) as refused:
        raise_record_errors([batch], asked, NOW)
    assert refused.value.code is code
    assert [index for index, _ in refused.value.record_errors] == [0]


def test_messages_of_old_formats_are_checked_too() -> None:
    keyless = LegacyBatch(memoryview(build_message(1, 0, NOW, None, b"v")))
    with pytest.raises(RecordValidationError):
        raise_record_errors([keyless], COMPACTED, NOW)
    raise_record_errors([LegacyBatch(memoryview(build_message(0, 0, -1, b"k", b"v")))], LIMITED, NOW)


@pytest.mark.parametrize(("count", "named"), [(RECORD_ERRORS_MAX, RECORD_ERRORS_MAX), (12_000, RECORD_ERRORS_MAX)])
def test_number_of_errors_is_bounded(count: int, named: int) -> None:
    with pytest.raises(RecordValidationError) as refused:
        raise_record_errors([batch_of(*[SimpleRecord(NOW, None, None)] * count)], COMPACTED, NOW)
    assert len(refused.value.record_errors) == named
    assert f"due to {count} record errors in total" in refused.value.message
