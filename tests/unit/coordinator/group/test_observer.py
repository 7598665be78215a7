from __future__ import annotations

from odradek.coordinator.group.state.group_metadata import GroupMetadata
from tests.support.transcripts.group_transcript import Transcript


class Events:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def rebalance_begins(self, group: GroupMetadata, reason: str) -> None:
        self.seen.append(f"rebalance of {group.generation_id}: {reason.partition(';')[0]}")

    def changed(self, group: GroupMetadata) -> None:
        offsets = [f"{key}:{offset.offset}" for key, offset in group.offsets.items()]
        self.seen.append(" ".join([group.state.value, str(group.generation_id), *offsets]))

    def take(self) -> list[str]:
        seen, self.seen = self.seen, []
        return seen


def observed() -> tuple[Transcript, Events]:
    transcript, events = Transcript(), Events()
    transcript.coordinator.observe(events)
    return transcript, events


def test_a_generation_is_seen_from_its_rebalance_to_its_assignment() -> None:
    transcript, events = observed()
    transcript.run("join m v=3")
    transcript.run("wait 1ms")
    assert events.take() == [
        "rebalance of 0: adding new member m-1 with group instance id None",
        "CompletingRebalance 1",
    ]
    transcript.run("sync m assign=m:a")
    assert events.take() == ["Stable 1"]
    transcript.run("leave m")
    assert events.take() == [
        "rebalance of 1: removing member m-1 on LeaveGroup",
        "Empty 2",
        "Empty 2",
    ]


def test_offsets_are_seen_when_they_are_committed_and_when_they_are_removed() -> None:
    transcript, events = observed()
    transcript.log.hold = True
    transcript.run("commit c t-0:7 id=none gen=-1")
    assert events.take() == []
    transcript.log.release()
    assert events.take() == ["Empty 0 t-0:7"]
    transcript.run("delete g")
    assert events.take() == ["Dead 0"]


def test_offsets_of_a_transaction_are_seen_with_its_marker() -> None:
    transcript, events = observed()
    transcript.run("txn-commit p1 t-0:3")
    assert events.take() == ["Empty 0"]
    transcript.run("end-txn p1 commit")
    assert events.take() == ["Empty 0 t-0:3"]


def test_groups_of_a_coordinator_that_stops_are_dead() -> None:
    transcript, events = observed()
    transcript.run("commit c t-0:7 id=none gen=-1")
    events.take()
    transcript.coordinator.shutdown()
    assert events.take() == ["Dead 0 t-0:7"]
