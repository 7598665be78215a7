"""Messages of magic 0 and 1, seen as batches.

    offset i64 | size i32 | CRC-32 u32 | magic i8 | attributes i8 | [magic 1: timestamp i64] | key length i32 | key
    | value length i32 | value

An uncompressed message is a batch of one. A compressed one is a *wrapper*: its value is a compressed set of messages
and its offset that of the last of them. Inside, offsets are absolute (magic 0) or count from 0 (magic 1, KIP-31), and
with LogAppendTime the wrapper's timestamp is that of all. The CRC is zlib's and covers magic to end.

They come from old segments and old clients. We write them only for clients that fetch with version 3 or below.

Kafka: AbstractLegacyRecordBatch and LegacyRecord.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from odradek.protocol.records.compression import CompressionType, compress, decompress
from odradek.protocol.records.errors import CorruptRecordError, InvalidRecordError, UnsupportedCompressionTypeError
from odradek.protocol.records.layout import (
    COMPRESSION_MASK,
    CREATE_TIME,
    LEGACY_HEADER,
    LEGACY_OVERHEAD_V0,
    LEGACY_TIMESTAMP_POSITION,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V0,
    MAGIC_V1,
    MAX_DECOMPRESSED_BYTES,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
    TIMESTAMP_TYPE_MASK,
)
from odradek.protocol.records.record import Record, SimpleRecord

_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")


class LegacyBatch:
    """A view over one message of magic 0 or 1, with the attributes of a `RecordBatch` as far as it can have them.

    `buffer` may be just the header (18 bytes, 26 for magic 1). The base offset of a wrapper is inside it, so asking
    for it opens the batch.
    """

    __slots__ = ("_base_offset", "attributes", "buffer", "crc", "last_offset", "length", "magic", "max_timestamp")

    def __init__(self, buffer: memoryview) -> None:
        if len(buffer) < LEGACY_HEADER.size:
            raise CorruptRecordError(f"Record is corrupt (it has only {len(buffer)} bytes)")
        self.buffer = buffer
        self.last_offset: int
        self.length: int
        self.crc: int
        self.magic: int
        self.attributes: int
        self.last_offset, self.length, self.crc, self.magic, self.attributes = LEGACY_HEADER.unpack_from(buffer)
        self.max_timestamp: int = NO_TIMESTAMP
        if self.magic == MAGIC_V1:
            if len(buffer) < LEGACY_TIMESTAMP_POSITION + 8:
                raise CorruptRecordError(f"Record is corrupt (it has only {len(buffer)} bytes)")
            (self.max_timestamp,) = _LONG.unpack_from(buffer, LEGACY_TIMESTAMP_POSITION)
        self._base_offset: int | None = None

    def __repr__(self) -> str:
        return (
            f"LegacyBatch(magic={self.magic}, last_offset={self.last_offset}, attributes={self.attributes}, "
            f"compression_type={self.compression_type}, crc={self.crc}, max_timestamp={self.max_timestamp})"
        )

    # Fields that these messages do not have, with Kafka's values for them.
    partition_leader_epoch: Final = NO_PARTITION_LEADER_EPOCH
    producer_id: Final = NO_PRODUCER_ID
    producer_epoch: Final = NO_PRODUCER_EPOCH
    base_sequence: Final = NO_SEQUENCE
    last_sequence: Final = NO_SEQUENCE
    record_count: Final = None
    """Unknown without opening a wrapper."""
    delete_horizon_ms: Final = None
    has_producer_id: Final = False
    is_transactional: Final = False
    is_control: Final = False

    @property
    def size_in_bytes(self) -> int:
        """The whole message, as its size field declares it."""
        return LOG_OVERHEAD + self.length

    @property
    def base_offset(self) -> int:
        """The first record's offset."""
        if not self.attributes & COMPRESSION_MASK:
            return self.last_offset
        if self._base_offset is None:
            self._base_offset = next(self.records()).offset
        return self._base_offset

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def base_timestamp(self) -> int:
        return self.max_timestamp

    @property
    def last_offset_delta(self) -> int:
        return self.last_offset - self.base_offset

    @property
    def compression_type(self) -> int:
        """The codec's id; 5 to 7 are none."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """0 create time, 1 log append time, -1 none (magic 0)."""
        if self.magic == MAGIC_V0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME

    def is_valid(self) -> bool:
        """All bytes are there and the CRC agrees."""
        buffer = self.buffer
        return (
            self.length >= LEGACY_OVERHEAD_V0
            and len(buffer) == self.size_in_bytes
            and zlib.crc32(buffer[MAGIC_POSITION:]) == self.crc
        )

    def ensure_valid(self) -> None:
        """Raise `CorruptRecordError` unless the bytes are the ones that were sent."""
        if self.is_valid():
            return
        if self.length < LEGACY_OVERHEAD_V0 or len(self.buffer) != self.size_in_bytes:
            raise CorruptRecordError(
                f"Record is corrupt (it declares {self.size_in_bytes} bytes and has {len(self.buffer)})"
            )
        computed = zlib.crc32(self.buffer[MAGIC_POSITION:])
        raise CorruptRecordError(f"Record is corrupt (stored crc = {self.crc}, computed crc = {computed})")

    @property
    def key(self) -> bytes | None:
        """The key of the outer message; a wrapper has none."""
        return self._key_and_value()[0]

    @property
    def value(self) -> bytes | None:
        """The value of the outer message: of a wrapper, the compressed set."""
        return self._key_and_value()[1]

    def records(
        self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES, *, from_client: bool = False
    ) -> Iterator[Record]:
        """The records, with absolute offsets and the timestamps a consumer sees; those of a wrapper one by one.

        `from_client`: the inner checksums and magics of a wrapper are verified.

        Raises: CorruptRecordError, at once or where the iteration comes to an invalid message.
        """
        if not self.attributes & COMPRESSION_MASK:
            key, value = self._key_and_value()
            return iter((Record(self.last_offset, self.max_timestamp, key, value),))
        data = self.inner_bytes(max_decompressed_bytes)
        last = self._last_inner(data)
        base = 0
        if self.magic == MAGIC_V1 and self.last_offset != 0:
            # Some librdkafka versions send 0 as the wrapper's offset: then the inner offsets are absolute.
            base = self.last_offset - last
            if base < 0:
                raise InvalidRecordError(
                    f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{self.last_offset}' "
                    f"is less than the last inner message offset '{last}' and it is not zero."
                )
        return self._inner_records(data, base, from_client)

    def inner_bytes(self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
        """The messages of a wrapper one after the other, uncompressed. The last may be cut off."""
        codec = self.compression_type
        if codec == CompressionType.ZSTD:
            raise InvalidRecordError(
                f"Invalid wrapper compressionType found in legacy deep record iterator {self.magic}"
            )
        value = self._key_and_value()[1]
        if value is None:
            raise InvalidRecordError(f"Found invalid compressed record set with null value (magic = {self.magic})")
        return decompress(codec, value, max_decompressed_bytes, magic=self.magic)

    def inner_messages(self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[LegacyBatch]:
        """The messages of a wrapper as they stand in it: relative offsets, own timestamps."""
        data = self.inner_bytes(max_decompressed_bytes)
        self._last_inner(data)
        return _messages(data)

    def _last_inner(self, data: bytes) -> int:
        """The offset of the last message, as it stands there. Checks sizes and magics of all."""
        last = None
        for position, _ in _spans(data):
            if data[position + MAGIC_POSITION] > MAGIC_V1:
                magic = (data[position + MAGIC_POSITION] ^ 0x80) - 0x80
                raise InvalidRecordError(f"Invalid magic {magic} of a message inside a compressed message")
            last = position
        if last is None:
            raise InvalidRecordError("Found invalid compressed record set with no inner records")
        return int(_LONG.unpack_from(data, last)[0])

    def _inner_records(self, data: bytes, base: int, from_client: bool) -> Iterator[Record]:
        is_append_time = self.timestamp_type == LOG_APPEND_TIME
        for message in _messages(data):
            if from_client:
                if message.magic != self.magic:
                    raise InvalidRecordError(
                        f"A message of magic {message.magic} does not match outer magic {self.magic}"
                    )
                message.ensure_valid()
            if message.attributes & COMPRESSION_MASK:
                raise InvalidRecordError("Inner messages must not be compressed")
            key, value = message._key_and_value()
            timestamp = message.max_timestamp
            if is_append_time and message.magic == MAGIC_V1:
                timestamp = self.max_timestamp
            yield Record(_wrapped(base + message.last_offset), timestamp, key, value)

    def _key_and_value(self) -> tuple[bytes | None, bytes | None]:
        position = LEGACY_TIMESTAMP_POSITION + (8 if self.magic == MAGIC_V1 else 0)
        key, position = self._sized(position)
        value, _ = self._sized(position)
        return key, value

    def _sized(self, position: int) -> tuple[bytes | None, int]:
        buffer = self.buffer
        if position + 4 > len(buffer):
            raise InvalidRecordError("Found invalid record structure: the message ends before a length")
        (size,) = _INT.unpack_from(buffer, position)
        position += 4
        if size < 0:
            return None, position
        if position + size > len(buffer):
            raise InvalidRecordError(f"Found invalid record structure: {size} bytes do not fit into the message")
        return bytes(buffer[position : position + size]), position + size

    def with_last_offset(self, offset: int) -> bytes:
        """The first 8 bytes with another offset, which lies outside the CRC."""
        return _LONG.pack(offset)


def _spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each whole message. Raises: CorruptRecordError for a size that no message has."""
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        (size,) = _INT.unpack_from(data, position + 8)
        if size < LEGACY_OVERHEAD_V0:
            raise CorruptRecordError(f"Record size is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})")
        end = position + LOG_OVERHEAD + size
        if end > len(data):
            return
        yield position, end
        position = end


def _messages(data: bytes) -> Iterator[LegacyBatch]:
    view = memoryview(data)
    return (LegacyBatch(view[begin:end]) for begin, end in _spans(data))


def _wrapped(offset: int) -> int:
    """An offset within 64 bits. A wrapper may hold any inner offsets, which Kafka adds up without a check."""
    return (offset + 2**63) % 2**64 - 2**63


def build_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    compression_type: int = CompressionType.NONE,
    timestamp_type: int = CREATE_TIME,
) -> bytes:
    """One message. With a codec, `value` is the compressed set already."""
    if magic not in (MAGIC_V0, MAGIC_V1):
        raise ValueError(f"Invalid magic value {magic}")
    attributes = compression_type
    body = bytearray((magic, 0))
    if magic == MAGIC_V1:
        attributes |= TIMESTAMP_TYPE_MASK if timestamp_type == LOG_APPEND_TIME else 0
        body += _LONG.pack(timestamp)
    body[1] = attributes
    for part in (key, value):
        body += _INT.pack(-1 if part is None else len(part))
        body += part or b""
    return LEGACY_HEADER.pack(offset, len(body) + 4, zlib.crc32(body), magic, attributes) + body[2:]


def build_messages(
    records: Iterable[Record | SimpleRecord],
    magic: int,
    *,
    base_offset: int = 0,
    compression_type: int = CompressionType.NONE,
    timestamp_type: int = CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    level: int | None = None,
    sizes: list[int] | None = None,
) -> bytes:
    """Messages one after the other, or one wrapper around them. Headers are lost: the format has none.

    Relative offsets inside a wrapper of magic 1 count from `base_offset`. `sizes` gets the bytes of the messages and of
    the header of their wrapper, before compression.
    """
    if compression_type == CompressionType.ZSTD:
        raise UnsupportedCompressionTypeError(f"ZStandard compression is not supported for magic {magic}")
    is_relative = magic == MAGIC_V1 and compression_type != CompressionType.NONE
    messages = bytearray()
    last_offset = base_offset - 1
    max_timestamp = NO_TIMESTAMP
    for record in records:
        last_offset = record.offset if isinstance(record, Record) else last_offset + 1
        timestamp = log_append_time if timestamp_type == LOG_APPEND_TIME else record.timestamp
        max_timestamp = max(max_timestamp, timestamp)
        offset = last_offset - base_offset if is_relative else last_offset
        messages += build_message(magic, offset, timestamp, record.key, record.value, timestamp_type=timestamp_type)
    if sizes is not None:
        header = len(build_message(magic, 0, 0, None, None)) if compression_type else 0
        sizes.append(header + len(messages))
    if compression_type == CompressionType.NONE or not messages:
        return bytes(messages)
    packed = compress(compression_type, messages, level, magic)
    return build_message(
        magic,
        last_offset,
        max_timestamp,
        None,
        packed,
        compression_type=compression_type,
        timestamp_type=timestamp_type,
    )
