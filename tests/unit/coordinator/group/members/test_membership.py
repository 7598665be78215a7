from __future__ import annotations

import pytest

from tests.support.transcripts.group_transcript import Transcript


@pytest.fixture
def stable() -> Transcript:
    """Group g of m1, which leads, and m2."""
    transcript = Transcript()
    for command in ("join m1 v=3", "join m2 v=3", "wait 1ms", "sync m2", "sync m1 m1:A m2:B"):
        transcript.run(command)
    return transcript


@pytest.mark.parametrize("version", range(6))
def test_an_assignment_is_repeated_in_every_version(stable: Transcript, version: int) -> None:
    assert stable.run(f"sync m2 v={version}") == ["m2 <- SyncGroup NONE assignment=B"]


@pytest.mark.parametrize("version", range(6))
def test_the_protocol_is_checked_where_it_is_named(stable: Transcript, version: int) -> None:
    expected = "INCONSISTENT_GROUP_PROTOCOL" if version >= 5 else "NONE"
    assert stable.run(f"sync m2 v={version} protocol=null")[0].startswith(f"m2 <- SyncGroup {expected}")


@pytest.mark.parametrize("version", range(5))
def test_heartbeats_in_every_version(stable: Transcript, version: int) -> None:
    assert stable.run(f"heartbeat m2 v={version}") == ["m2 <- Heartbeat NONE"]


@pytest.mark.parametrize("version", range(6))
def test_leaving_in_every_version(stable: Transcript, version: int) -> None:
    (answer, state) = stable.run(f"leave m2 v={version}")
    assert answer == ("m2 <- LeaveGroup NONE" if version < 3 else "m2 <- LeaveGroup NONE m2-2:NONE")
    assert state == "g: PreparingRebalance gen 1"


def test_a_repeated_sync_takes_the_place_of_the_one_that_waits() -> None:
    transcript = Transcript()
    for command in ("join m1 v=3", "join m2 v=3", "wait 1ms", "sync m2"):
        transcript.run(command)
    assert transcript.run("sync m2") == ["m2 <- SyncGroup REBALANCE_IN_PROGRESS"]
    assert "m2 <- SyncGroup NONE assignment=B" in transcript.run("sync m1 m1:A m2:B")


def test_leaving_twice_in_one_request(stable: Transcript) -> None:
    answer = stable.run("leave m2-2/none m2-2/none group=g")[0]
    assert answer.endswith("m2-2:NONE m2-2:UNKNOWN_MEMBER_ID")


def test_the_last_to_leave_empties_the_group(stable: Transcript) -> None:
    answers = stable.run("leave m1 m2")
    assert answers[-1] == "g: Empty gen 2"
    assert stable.coordinator.waiting_count == 0
