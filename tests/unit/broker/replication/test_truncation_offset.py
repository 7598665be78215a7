from __future__ import annotations

import pytest

from odradek.broker.replication.truncation_offset import OffsetTruncationState, truncation_offset
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.offsets import EpochEndOffset, EpochEntry

END = 100
INITIAL = 7


def decide(answer: tuple[int, int], *own: tuple[int, int]) -> OffsetTruncationState:
    epochs = LeaderEpochs([EpochEntry(epoch, start) for epoch, start in own])
    return truncation_offset(
        EpochEndOffset(*answer),
        initial_offset=INITIAL,
        log_end_offset=END,
        end_offset_for_epoch=lambda epoch: epochs.end_offset_for(epoch, END),
    )


@pytest.mark.parametrize(
    ("answer", "own", "expected"),
    [
        ((-1, -1), [(0, 0)], (INITIAL, True)),
        ((-1, 60), [(0, 0)], (60, True)),
        ((-1, 160), [(0, 0)], (END, True)),
        ((3, 60), [(3, 50)], (60, True)),
        ((3, 160), [(3, 50)], (END, True)),
        ((3, 80), [(3, 50), (4, 70)], (70, True)),
        ((3, 60), [(3, 50), (4, 70)], (60, True)),
        ((3, 60), [(2, 40), (5, 70)], (70, False)),
        ((3, 60), [], (60, True)),
        ((3, 160), [], (END, True)),
    ],
    ids=[
        "the other log does not know: the offset to begin at",
        "no epoch in the answer: its offset",
        "no epoch in the answer, and more than there is",
        "the same epoch, which ends earlier there",
        "the same epoch, which ends later there",
        "the same epoch, which ends earlier here",
        "the same epoch in both, and younger ones here",
        "an epoch that is not here: to the end of the one below, and ask again",
        "an epoch below all of ours",
        "an epoch below all of ours, and more than there is",
    ],
)
def test_the_offset(answer: tuple[int, int], own: list[tuple[int, int]], expected: tuple[int, bool]) -> None:
    assert decide(answer, *own) == expected
