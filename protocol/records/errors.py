"""What is wrong with record bytes, told apart as Kafka tells it to clients.

One base, `CorruptRecordError`, so that who reads bytes of unknown origin catches one class. Each is the answer that a
client gets, hence a `KafkaError`.
"""

from __future__ import annotations

from typing import ClassVar

from odradek.protocol.errors import ErrorCode, KafkaError


class CorruptRecordError(KafkaError):
    """Framing or checksum is wrong (`CorruptRecordException`): what arrived is not what was sent."""

    error_code: ClassVar[ErrorCode] = ErrorCode.CORRUPT_MESSAGE

    def __init__(self, message: str) -> None:
        super().__init__(self.error_code, message)


class InvalidRecordError(CorruptRecordError):
    """The checksum holds but the content contradicts itself (`InvalidRecordException`)."""

    error_code: ClassVar[ErrorCode] = ErrorCode.INVALID_RECORD


class DecompressionError(InvalidRecordError):
    """Compressed records cannot be opened.

    Apache answers UNKNOWN_SERVER_ERROR here, because the codec's exception escapes; a client's fault should not look
    like a broker's, so it is INVALID_RECORD.
    """


class DecompressedSizeError(DecompressionError):
    """Opening the records would exceed the limit (a decompression bomb)."""


class UnsupportedCompressionTypeError(CorruptRecordError):
    """The codec exists, but not for this format or this reader (`UnsupportedCompressionTypeException`)."""

    error_code: ClassVar[ErrorCode] = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
