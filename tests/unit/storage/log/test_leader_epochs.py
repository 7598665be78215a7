"""Leader epochs: the table of KIP-101, and a simple model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.offsets import EpochEntry

ENTRIES = [EpochEntry(0, 0), EpochEntry(2, 40), EpochEntry(5, 70)]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 40)), (1, (0, 40)), (2, (2, 70)), (4, (2, 70)), (5, (5, 90)), (6, (-1, -1))],
)
def test_end_offset(epoch: int, answer: tuple[int, int]) -> None:
    assert LeaderEpochs(ENTRIES).end_offset_for(epoch, 90) == answer


@pytest.mark.parametrize(
    ("epoch", "offset", "expected"),
    [(ENTRIES[-1].epoch, 90, True), (ENTRIES[-1].epoch, 91, False), (ENTRIES[-1].epoch - 1, 90, False)],
)
def test_a_log_that_ends_in_the_latest_epoch_goes_on_with_ours(epoch: int, offset: int, expected: bool) -> None:
    assert LeaderEpochs(ENTRIES).continues(epoch, offset, 90) is expected


def test_end_offset_below_the_first_epoch() -> None:
    assert LeaderEpochs([EpochEntry(3, 10)]).end_offset_for(1, 90) == (1, 10)
    assert LeaderEpochs().end_offset_for(1, 90) == (-1, -1)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30)), max_size=15))
def test_assign_against_a_model(assigned: list[tuple[int, int]]) -> None:
    written: list[list[EpochEntry]] = []
    epochs = LeaderEpochs(on_change=lambda entries: written.append(list(entries)))
    model: list[tuple[int, int]] = []
    for epoch, start in assigned:
        changed = not (model and model[-1][0] == epoch and start >= model[-1][1])
        if changed:
            while model and (model[-1][0] >= epoch or model[-1][1] >= start):
                model.pop()
            model.append((epoch, start))
        count = len(written)
        assert epochs.assign(epoch, start) == changed
        assert len(written) == count + changed
        assert epochs.entries == model
        assert epochs.latest_epoch == model[-1][0]
    assert all(
        a.epoch < b.epoch and a.start_offset < b.start_offset
        for a, b in zip(epochs.entries, epochs.entries[1:], strict=False)
    )


def test_negative_epochs_are_refused() -> None:
    with pytest.raises(ValueError, match="invalid partition leader epoch"):
        LeaderEpochs().assign(-1, 0)


@pytest.mark.parametrize(("end", "kept"), [(100, 3), (71, 3), (70, 2), (41, 2), (40, 1), (1, 1), (0, 0), (-1, 3)])
def test_truncate_from_end(end: int, kept: int) -> None:
    epochs = LeaderEpochs(ENTRIES)
    epochs.truncate_from_end(end)
    assert epochs.entries == ENTRIES[:kept]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, ENTRIES),
        (20, [(0, 20), (2, 40), (5, 70)]),
        (40, [(2, 40), (5, 70)]),
        (60, [(2, 60), (5, 70)]),
        (99, [(5, 99)]),
    ],
)
def test_truncate_from_start(start: int, expected: list[tuple[int, int]]) -> None:
    changes: list[object] = []
    epochs = LeaderEpochs(ENTRIES, changes.append)
    epochs.truncate_from_start(start)
    assert epochs.entries == expected
    assert bool(changes) == (expected != ENTRIES)


def test_lookups() -> None:
    epochs = LeaderEpochs(ENTRIES)
    assert (epochs.earliest_entry, epochs.latest_epoch) == (ENTRIES[0], ENTRIES[-1].epoch)
    epochs.clear()
    assert epochs.is_empty
    assert (epochs.earliest_entry, epochs.latest_epoch) == (None, -1)
