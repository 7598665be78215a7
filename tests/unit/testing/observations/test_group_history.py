from __future__ import annotations

import pytest

from odradek.testing.observations import group_history
from odradek.testing.observations.group_history import GroupHistory
from odradek.testing.observations.waits import Change, Waits
from tests.support.transcripts.group_transcript import Transcript


def observed() -> tuple[Transcript, GroupHistory, Waits]:
    transcript, waits = Transcript(), Waits()
    history = GroupHistory(transcript.clock, waits)
    transcript.coordinator.observe(history)
    return transcript, history, waits


def joined(transcript: Transcript, *names: str) -> None:
    for name in names:
        transcript.run(f"join {name} v=3")
    transcript.run("wait 1ms")


def test_members_that_join_and_leave() -> None:
    transcript, history, waits = observed()
    joined(transcript, "m")
    transcript.run("wait 9ms")
    transcript.run("sync m assign=m:a")
    transcript.run("join n v=3")
    transcript.run("join m v=3")
    transcript.run("wait 1ms")
    first, second = history.rebalances("g")
    assert (first.generation, first.members, first.joined, first.left) == (1, ("m-1",), ("m-1",), ())
    assert first.ended_ms == first.began_ms + 10
    assert (second.generation, set(second.members), second.joined, second.ended_ms) == (
        2,
        {"m-1", "n-2"},
        ("n-2",),
        None,
    )
    transcript.run("leave n")
    third = history.rebalances("g")[-1]
    assert (third.generation, third.reason.partition(";")[0]) == (None, "removing member n-2 on LeaveGroup")
    assert waits.count(Change.GROUPS) > 5


def test_a_clear_forgets_rebalances_but_not_members() -> None:
    transcript, history, _ = observed()
    joined(transcript, "m")
    transcript.run("sync m assign=m:a")
    history.clear()
    assert history.rebalances("g") == ()
    transcript.run("leave m")
    (last,) = history.rebalances("g")
    assert last.left == ("m-1",)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_history, "GROUPS_MAX", 2)
    monkeypatch.setattr(group_history, "REBALANCES_MAX", 2)
    transcript, history, _ = observed()
    for group in ("a", "b", "c"):
        transcript.run(f"join {group} v=3 group={group}")
    assert [len(history.rebalances(group)) for group in ("a", "b", "c")] == [0, 1, 1]
    transcript.run("wait 1ms")
    for _ in range(3):
        transcript.run("leave c group=c")
        transcript.run("join c v=3 group=c id=none")
        transcript.run("wait 1ms")
    assert len(history.rebalances("c")) == 2


def test_a_group_that_is_made_again_begins_without_members() -> None:
    transcript, history, _ = observed()
    joined(transcript, "m")
    transcript.run("leave m")
    transcript.run("delete g")
    joined(transcript, "n")
    last = history.rebalances("g")[-1]
    assert (last.generation, last.joined, last.left) == (1, ("n-2",), ())
