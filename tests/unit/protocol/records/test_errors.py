from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.errors import (
    CorruptRecordError,
    DecompressedSizeError,
    DecompressionError,
    InvalidRecordError,
    UnsupportedCompressionTypeError,
)


@pytest.mark.parametrize(
    ("error_type", "code"),
    [
        (CorruptRecordError, ErrorCode.CORRUPT_MESSAGE),
        (InvalidRecordError, ErrorCode.INVALID_RECORD),
        (DecompressionError, ErrorCode.INVALID_RECORD),
        (DecompressedSizeError, ErrorCode.INVALID_RECORD),
        (UnsupportedCompressionTypeError, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_every_error_is_an_answer_with_a_code(error_type: type[CorruptRecordError], code: ErrorCode) -> None:
    error = error_type("what is wrong")
    assert isinstance(error, KafkaError)
    assert isinstance(error, CorruptRecordError)
    assert (error.code, error.message) == (code, "what is wrong")
