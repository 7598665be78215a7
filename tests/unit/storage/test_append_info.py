"""The errors of an append have the data that the response needs."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.storage.append_info import LogAppendInfo, RecordValidationError, UnexpectedAppendOffsetError


def test_record_errors_travel_with_the_code() -> None:
    error = RecordValidationError(ErrorCode.INVALID_TIMESTAMP, "why", [(2, "too old")])
    assert (error.code, str(error), error.record_errors) == (ErrorCode.INVALID_TIMESTAMP, "why", [(2, "too old")])


def test_unexpected_offsets_are_named() -> None:
    error = UnexpectedAppendOffsetError("why", 3, 9)
    assert (error.first_offset, error.last_offset) == (3, 9)


def test_an_append_is_no_duplicate_and_needs_no_flush_by_default() -> None:
    info = LogAppendInfo(first_offset=0, last_offset=0, max_timestamp=0)
    assert (info.duplicate, info.flush_required, info.log_append_time) == (False, False, -1)
