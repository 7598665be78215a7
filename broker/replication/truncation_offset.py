"""The offset to which a copy of a log is truncated before it continues: the end of the last epoch that both logs have.

The copy names its latest epoch; the source answers with the largest epoch that it has at or below that one, and with
the end offset of that epoch:

    the answer                              the copy is truncated to
    undefined                               its initial offset, usually its high watermark
    an epoch that the copy has              the smaller of the two ends of that epoch
    an epoch that the copy does not have    the end of its largest epoch below; then it asks again
    ... and it has none below               the end offset of the answer

and never beyond its own end (KIP-101, KIP-279).

Kafka: AbstractFetcherThread.getOffsetTruncationState, OffsetTruncationState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.offsets import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.offsets import EpochEndOffset


class OffsetTruncationState(NamedTuple):
    """The offset to truncate to, and whether no further question is needed."""

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
