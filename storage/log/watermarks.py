"""How far readers may see: the four offsets of a log and their order.

    log start offset <= last stable offset <= high watermark <= log end offset

The high watermark is moved by the replica manager. The last stable offset follows from it and from the first unstable
offset, where the earliest transaction begins that is open or whose marker is not yet below the high watermark. Each is
kept with its position in a file where that is known, so that a fetch needs no lookup for its upper bound.

Whoever reads the log again only when there is something new is told by `on_change`: of each move of these offsets, of a
new segment, and of whatever else of the log a read depends on.

Invariants: the order above, at every return; a position, where one is kept, is that of the batch which holds the offset
or of the log's end.

Kafka: the high watermark and last stable offset of UnifiedLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchIsolation

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from odradek.storage.log.local_log import LocalLog
    from odradek.storage.producers.producer_state_manager import ProducerStateManager


class Watermarks:
    """The bounds of one log."""

    __slots__ = ("_first_unstable", "_high_watermark", "_local", "_producers", "log_start_offset", "on_change")

    def __init__(self, local_log: LocalLog, producers: ProducerStateManager, log_start_offset: int) -> None:
        self._local = local_log
        self._producers = producers
        self.log_start_offset = log_start_offset
        self.on_change: Callable[[], None] = _nobody_asks
        self._high_watermark = LogOffsetMetadata(log_start_offset)
        self._first_unstable: LogOffsetMetadata | None = None
        self.update_first_unstable()

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.message_offset

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        """The high watermark with its position, looked up once."""
        metadata = self._high_watermark
        if metadata.segment_base_offset < 0:
            metadata = self._high_watermark = self._local.locate(metadata.message_offset)
        return metadata

    @property
    def first_unstable(self) -> LogOffsetMetadata | None:
        return self._first_unstable

    @property
    def last_stable_offset(self) -> int:
        unstable, high_watermark = self._first_unstable, self._high_watermark.message_offset
        if unstable is not None and unstable.message_offset < high_watermark:
            return unstable.message_offset
        return high_watermark

    @property
    def last_stable_metadata(self) -> LogOffsetMetadata:
        unstable = self._first_unstable
        if unstable is None or unstable.message_offset >= self._high_watermark.message_offset:
            return self.high_watermark_metadata
        if unstable.segment_base_offset < 0:
            unstable = self._first_unstable = self._local.locate(unstable.message_offset)
        return unstable

    def limit(self, isolation: FetchIsolation) -> int:
        """The first offset a reader may not see."""
        if isolation is FetchIsolation.LOG_END:
            return self._local.log_end_offset
        return self.high_watermark if isolation is FetchIsolation.HIGH_WATERMARK else self.last_stable_offset

    def limit_metadata(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """The same with its position."""
        if isolation is FetchIsolation.LOG_END:
            return self._local.end_offset_metadata
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark_metadata
        return self.last_stable_metadata

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, kept within [log start, log end]; answers what it became."""
        if high_watermark >= self._local.log_end_offset:
            self._set(self._local.end_offset_metadata)
        else:
            self._set(LogOffsetMetadata(max(high_watermark, self.log_start_offset)))
        return self.high_watermark

    def maybe_increment_high_watermark(self, new: int | LogOffsetMetadata) -> bool:
        """Advance the high watermark; False when it is there already.

        The same offset on a newer segment counts as an advance: its position has changed.
        """
        metadata = LogOffsetMetadata(new) if isinstance(new, int) else new
        offset, end = metadata.message_offset, self._local.log_end_offset
        if offset > end:
            raise ValueError(
                f"High watermark {offset} update exceeds current log end offset {end} of {self._local.topic_partition}"
            )
        old = self._high_watermark
        if offset < old.message_offset or (offset == old.message_offset and not old.on_older_segment(metadata)):
            return False
        self._set(self._local.end_offset_metadata if offset == end else metadata)
        return True

    def raise_high_watermark_to_end(self) -> bool:
        """The same to the log end, where nobody else has to have the records: short, for it comes with every append."""
        end = self._local.end_offset_metadata
        old = self._high_watermark
        if end.message_offset == old.message_offset and not old.on_older_segment(end):
            return False
        self._set(end)
        return True

    def on_rolled(self) -> None:
        """The log end has moved to a new segment; a high watermark at the log end moves along."""
        self.on_change()
        if self.high_watermark >= self._local.log_end_offset:
            self._high_watermark = self._local.end_offset_metadata

    def on_segments_replaced(self, base_offsets: Container[int]) -> None:
        """Positions in these segments mean nothing any more. They lie below the last stable offset: of the positions
        kept here, only that of a high watermark at the end of one of them can be affected; it is looked up anew.
        """
        if self._high_watermark.segment_base_offset in base_offsets:
            self.on_change()
            self._high_watermark = LogOffsetMetadata(self.high_watermark)

    def update_first_unstable(self) -> None:
        """To be called after every change of the log's end, of its start, or of the producers' transactions."""
        self.on_change()
        if self._first_unstable is None and not self._producers.has_transactions:
            return
        unstable = self._producers.first_unstable_offset
        if unstable is not None and unstable.message_offset < self.log_start_offset:
            unstable = LogOffsetMetadata(self.log_start_offset)
        self._first_unstable = unstable

    def _set(self, metadata: LogOffsetMetadata) -> None:
        self._high_watermark = metadata
        self._producers.on_high_watermark_updated(metadata.message_offset)
        self.update_first_unstable()


def _nobody_asks() -> None:
    """For logs that nobody reads."""
