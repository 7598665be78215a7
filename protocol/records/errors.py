"""What is wrong with record bytes, told apart as Kafka tells it to clients.

One base, so that who reads bytes of unknown origin catches one class; each carries the Kafka error code to answer.
"""

from __future__ import annotations

from typing import ClassVar


class CorruptRecordError(ValueError):
    """Framing or checksum is wrong (`CorruptRecordException`, CORRUPT_MESSAGE): what arrived is not what was sent."""

    error_code: ClassVar[int] = 2


class InvalidRecordError(CorruptRecordError):
    """The checksum holds but the content contradicts itself (`InvalidRecordException`, INVALID_RECORD)."""

    error_code: ClassVar[int] = 87


class DecompressionError(InvalidRecordError):
    """Compressed records cannot be opened.

    Apache answers UNKNOWN_SERVER_ERROR here, because the codec's IOException escapes; a client's fault should not
    look like a broker's, so it is INVALID_RECORD.
    """


class DecompressedSizeError(DecompressionError):
    """Opening the records would exceed the limit (a decompression bomb)."""


class UnsupportedCompressionError(CorruptRecordError):
    """The codec exists, but not for this format (`UnsupportedCompressionTypeException`)."""

    error_code: ClassVar[int] = 76
