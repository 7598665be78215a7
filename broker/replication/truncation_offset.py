"""Where a copy of a log has to be cut before it can go on: the end of the last leader epoch that both logs know.

The copy names its latest epoch; the log it is copied from answers with the largest epoch it has at or below that one,
and where it ends there:

    the answer                              the copy is cut to
    undefined                               the offset it was told to begin at, its high watermark as a rule
    an epoch the copy has as well           the smaller of the two ends of that epoch
    an epoch the copy does not have         the end of its largest epoch below; then it has to ask again
    ... and it has none below               the end that was answered

and never beyond its own end. Kafka: AbstractFetcherThread.getOffsetTruncationState (KIP-101, KIP-279).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.offsets import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.offsets import EpochEndOffset


class OffsetTruncationState(NamedTuple):
    """The offset to cut to, and whether that settles it."""

    offset: int
    is_complete: bool


def truncation_offset(
    answer: EpochEndOffset,
    *,
    initial_offset: int,
    log_end_offset: int,
    end_offset_for_epoch: Callable[[int], EpochEndOffset],
) -> OffsetTruncationState:
    """`log_end_offset` and `end_offset_for_epoch` are the copy's."""
    if answer.end_offset == UNKNOWN_OFFSET:
        return OffsetTruncationState(initial_offset, is_complete=True)
    if answer.leader_epoch == NO_PARTITION_LEADER_EPOCH:
        return OffsetTruncationState(min(answer.end_offset, log_end_offset), is_complete=True)
    own = end_offset_for_epoch(answer.leader_epoch)
    if own.end_offset == UNKNOWN_OFFSET:
        return OffsetTruncationState(min(answer.end_offset, log_end_offset), is_complete=True)
    if own.leader_epoch != answer.leader_epoch:
        return OffsetTruncationState(min(own.end_offset, log_end_offset), is_complete=False)
    return OffsetTruncationState(min(own.end_offset, answer.end_offset, log_end_offset), is_complete=True)
