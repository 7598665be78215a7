"""The errors of record bytes, one class for each error that Kafka answers.

All of them but `CorruptLogError` are `CorruptRecordError`s, so that code which reads bytes of unknown origin catches
one class, and `KafkaError`s, because a client gets them as answers.

Kafka: CorruptRecordException, InvalidRecordException and UnsupportedCompressionTypeException.
"""

from __future__ import annotations

from typing import ClassVar

from odradek.protocol.errors import ErrorCode, KafkaError


class CorruptRecordError(KafkaError):
    """Framing or checksum is wrong: the bytes changed on the way. Kafka: CorruptRecordException."""

    error_code: ClassVar[ErrorCode] = ErrorCode.CORRUPT_MESSAGE

    def __init__(self, message: str) -> None:
        super().__init__(self.error_code, message)


class InvalidRecordError(CorruptRecordError):
    """The checksum is right but the content contradicts itself. Kafka: InvalidRecordException."""

    error_code: ClassVar[ErrorCode] = ErrorCode.INVALID_RECORD


class DecompressionError(InvalidRecordError):
    """Compressed records cannot be opened.

    Apache Kafka answers UNKNOWN_SERVER_ERROR, because nothing catches the codec's exception. INVALID_RECORD says that
    the client is at fault.
    """


class DecompressedSizeError(DecompressionError):
    """Opening the records would exceed the limit (a decompression bomb)."""


class UnsupportedCompressionTypeError(CorruptRecordError):
    """The codec exists, but not for this format or reader. Kafka: UnsupportedCompressionTypeException."""

    error_code: ClassVar[ErrorCode] = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class CorruptLogError(KafkaError):
    """A segment file contains bytes that are no valid batch."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)
