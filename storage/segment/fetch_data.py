"""The isolation and the result of a read of a log.

Kafka: FetchIsolation, FetchDataInfo.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.storage.offsets import LogOffsetMetadata
    from odradek.storage.segment.file_records import FileRegion
    from odradek.storage.segment.transaction_index import AbortedTxn

EMPTY_RECORDS: Final = memoryview(b"")


class FetchIsolation(Enum):
    """The upper bound of a read."""

    LOG_END = "log end"
    """Followers."""
    HIGH_WATERMARK = "high watermark"
    """Consumers that read uncommitted data."""
    TXN_COMMITTED = "transactions committed"
    """Consumers that read committed data only: up to the last stable offset, with the list of aborted transactions."""


@dataclass(slots=True)
class FetchDataInfo:
    """The records of a read, as a region of a file, and the offset and position of their start."""

    fetch_offset_metadata: LogOffsetMetadata
    records: FileRegion | memoryview
    first_entry_incomplete: bool = False
    """The first batch exceeds the size limit: consumers older than Fetch v3 then get no records."""
    aborted_transactions: list[AbortedTxn] | None = None

    @property
    def size_in_bytes(self) -> int:
        return len(self.records)
