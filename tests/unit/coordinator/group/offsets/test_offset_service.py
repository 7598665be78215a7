from __future__ import annotations

import pytest

from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.timer.sliced_work import run_through
from tests.support.transcripts.group_transcript import Transcript


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_are_committed_in_every_version(version: int) -> None:
    transcript = Transcript()
    assert transcript.run(f"commit c t-0:5 v={version}")[0] == "c <- OffsetCommit t-0:NONE"
    assert transcript.run("fetch g t-0") == ["OffsetFetch g NONE t-0:5"]


def test_version_0_is_another_place() -> None:
    transcript = Transcript()
    assert transcript.run("commit c t-0:5 v=0") == ["c <- OffsetCommit t-0:NONE"]
    assert transcript.run("fetch g t-0") == ["OffsetFetch g NONE t-0:-1"]
    assert transcript.run("fetch g t-0 v=0") == ["OffsetFetch NONE t-0:5"]
    assert not list(transcript.coordinator.groups)


@pytest.mark.parametrize("version", range(1, 10))
def test_stability_can_be_required_from_version_7_on(version: int) -> None:
    transcript = Transcript()
    transcript.run("hold")
    transcript.run("commit c t-0:5")
    (answer,) = transcript.run(f"fetch g t-0 v={version} stable=1")
    assert answer.endswith("UNSTABLE_OFFSET_COMMIT") is (version >= 7)


def test_a_group_that_moves_away_while_its_offsets_are_listed_is_not_one_without_offsets() -> None:
    transcript = Transcript()
    transcript.run("commit c t-0:5")
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=list(range(100)))]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    answers: list[OffsetFetchResponse] = []
    steps = transcript.coordinator.fetch_offsets(GroupRequestContext("c", "h", 8), request, answers.append)
    next(steps)
    transcript.coordinator.on_resigned(0, None)
    run_through(steps)
    assert [group.error_code for group in answers[0].groups] == [ErrorCode.NOT_COORDINATOR]


def test_a_commit_of_nothing_is_answered() -> None:
    transcript = Transcript()
    assert transcript.run("commit c")[0] == "c <- OffsetCommit "


def test_a_commit_keeps_its_member_alive() -> None:
    transcript = Transcript()
    for command in ("join m v=3 session=6s", "wait 1ms", "sync m"):
        transcript.run(command)
    for offset in range(5):
        transcript.run("wait 5s")
        assert transcript.run(f"commit m t-0:{offset}") == ["m <- OffsetCommit t-0:NONE"]
    assert transcript.run("wait 6s") == ["g: Empty gen 2"]


def test_a_refused_commit_does_not_keep_its_member_alive() -> None:
    transcript = Transcript()
    for command in ("join m v=3 session=6s", "wait 1ms", "sync m", "wait 5s"):
        transcript.run(command)
    assert transcript.run("commit m t-0:1 gen=0") == ["m <- OffsetCommit t-0:ILLEGAL_GENERATION"]
    assert transcript.run("wait 1s") == ["g: Empty gen 2"]


def test_a_commit_under_way_when_its_partition_is_deleted_does_not_come_back() -> None:
    transcript = Transcript()
    transcript.run("commit c t-1:1")
    transcript.run("hold")
    transcript.run("commit c t-0:5")
    transcript.run("topic-deleted t-0")
    assert transcript.run("release") == ["c <- OffsetCommit t-0:NONE"]
    assert transcript.run("fetch g all") == ["OffsetFetch g NONE t-1:1"]


@pytest.mark.parametrize("version", range(5))
def test_the_transaction_is_verified_before_offsets_are_taken(version: int) -> None:
    transcript = Transcript()
    assert transcript.run(f"txn-commit p t-0:5 v={version}")[0] == "p <- TxnOffsetCommit t-0:NONE"
    assert transcript.verifier.asked == [(0, "p", 1, 0, version >= 4)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("TRANSACTION_ABORTABLE", "TRANSACTION_ABORTABLE"),
        ("INVALID_TXN_STATE", "INVALID_TXN_STATE"),
        ("INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH"),
        ("NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR"),
    ],
)
def test_offsets_of_no_transaction_are_refused(error: str, told: str) -> None:
    transcript = Transcript()
    transcript.verifier.error = ErrorCode[error]
    assert transcript.run("txn-commit p t-0:5")[0] == f"p <- TxnOffsetCommit t-0:{told}"
    transcript.verifier.error = ErrorCode.NONE
    assert transcript.run("fetch g t-0 stable=1") == ["OffsetFetch g NONE t-0:-1"]


def test_offsets_of_no_producer_are_committed_like_those_of_a_consumer() -> None:
    transcript = Transcript()
    transcript.producers["p"] = TransactionalProducer(-1, -1)
    assert transcript.run("txn-commit p t-0:5")[0] == "p <- TxnOffsetCommit t-0:NONE"
    assert transcript.run("fetch g t-0 stable=1") == ["OffsetFetch g NONE t-0:5"]


def test_offsets_of_a_producer_without_an_epoch_are_refused_and_not_pending() -> None:
    transcript = Transcript()
    transcript.producers["p"] = TransactionalProducer(7, -1)
    assert transcript.run("txn-commit p t-0:5")[0] == "p <- TxnOffsetCommit t-0:UNKNOWN_SERVER_ERROR"
    assert transcript.run("fetch g t-0 stable=1") == ["OffsetFetch g NONE t-0:-1"]


def test_a_group_that_is_none_is_not_verified() -> None:
    transcript = Transcript()
    transcript.run("txn-commit p group=none t-0:1")
    assert transcript.verifier.asked == []


def test_written_commits_and_deleted_offsets_are_counted() -> None:
    """A commit counts once, however many offsets it has; of a deletion each offset that was there."""
    transcript = Transcript()
    transcript.run("commit c t-0:5 t-1:6")
    transcript.run("commit c t-0:7 gen=3")
    transcript.run("commit c")
    coordinator = transcript.coordinator
    assert coordinator.offset_commits == 1, "neither the one that was refused nor the one of nothing"
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in range(5)]
    topics = [OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    answers: list[OffsetDeleteResponse] = []
    request = OffsetDeleteRequest(group_id="g", topics=topics)
    run_through(coordinator.delete_offsets(GroupRequestContext("c", "h", 0), request, answers.append))
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE]
    assert coordinator.deleted_offsets == 2
