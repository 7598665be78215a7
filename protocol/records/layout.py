"""Positions and constants of the record formats.

All magics begin alike, so that a scan finds size and magic without knowing the format: offset i64 at 0, size i32 at 8
(the bytes behind it), magic i8 at 16.

Kafka: Records, RecordBatch, DefaultRecordBatch and LegacyRecord.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MAGIC_V0: Final = 0
MAGIC_V1: Final = 1
MAGIC_V2: Final = 2

LOG_OVERHEAD: Final = 12
"""Offset and size, which precede every batch and are not counted in its size field."""
MAGIC_POSITION: Final = 16
HEADER_SIZE_UP_TO_MAGIC: Final = 17
SIZE_AND_MAGIC: Final = Struct(">8xi4xb")

# Magic 2
BATCH_OVERHEAD: Final = 61
PREFIX_SIZE: Final = 16
"""Base offset, length and leader epoch: what a leader assigns, and what the CRC does not cover."""
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
"""The CRC-32C covers everything from here to the end."""
BATCH_HEADER: Final = Struct(">qiibIhiqqqhii")
PREFIX: Final = Struct(">qii")
SIZE_MAGIC_AND_ATTRIBUTES: Final = Struct(">8xi4xb4xh")

# Magic 0 and 1
LEGACY_OVERHEAD_V0: Final = 14
LEGACY_HEADER: Final = Struct(">qiIbb")
"""Offset, size, CRC-32, magic, attributes."""
LEGACY_TIMESTAMP_POSITION: Final = 18

# Attributes
COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
DELETE_HORIZON_MASK: Final = 0x40

NO_TIMESTAMP_TYPE: Final = -1
"""Magic 0 has no timestamps."""
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1

MAX_DECOMPRESSED_BYTES: Final = 32 * 1024 * 1024
"""Default limit for the size of one batch after decompression. Apache Kafka has none: a 1 MB batch of zeros grows a
thousandfold there. Java's producer fills a batch by its estimated compressed size: with a `batch.size` of 900 KB, only
records that compress to less than a thirtieth come to this limit."""
