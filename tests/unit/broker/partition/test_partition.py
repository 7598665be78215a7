"""One partition's leadership, epochs and limits, without a replica manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from odradek.storage.append_info import AppendOrigin
from odradek.storage.offsets import LogOffsetMetadata
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import OWN_ID, TOPIC_ID, TP, Replicas


class Hosted:
    def __init__(self, path: Path, overrides: dict[str, str] | None = None) -> None:
        self.replicas = Replicas(path, overrides)
        self.partition = self.replicas.manager.partitions.create(TP)

    def lead(self, *, epoch: int = 0, partition_epoch: int = 0, replicas: tuple[int, ...] = (OWN_ID,)) -> bool:
        return self.partition.make_leader(state(OWN_ID, epoch, partition_epoch, replicas), TOPIC_ID)

    def follow(self, *, epoch: int = 0, partition_epoch: int = 0) -> bool:
        return self.partition.make_follower(state(1, epoch, partition_epoch, (1, OWN_ID)), TOPIC_ID)

    def append(self, *values: bytes, acks: int = 1) -> int:
        return self.partition.append_as_leader(batch(*values), AppendOrigin.CLIENT, acks).last_offset


def state(leader: int, epoch: int, partition_epoch: int, replicas: tuple[int, ...]) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        isr=list(replicas),
        replicas=list(replicas),
        is_new=True,
    )


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    return Hosted(tmp_path)


def error_of(call: object, *arguments: object, **keywords: object) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call(*arguments, **keywords)  # type: ignore[operator]
    return raised.value.code


def test_leading_is_new_once(hosted: Hosted) -> None:
    assert hosted.lead()
    assert not hosted.lead(epoch=1, partition_epoch=1)
    assert hosted.follow(epoch=2, partition_epoch=2)
    assert hosted.lead(epoch=3, partition_epoch=3)


def test_state_of_an_older_partition_epoch_is_skipped(hosted: Hosted) -> None:
    hosted.lead(partition_epoch=5)
    assert not hosted.follow(epoch=1, partition_epoch=4)
    assert not hosted.lead(epoch=1, partition_epoch=4)
    assert (hosted.partition.leader_epoch, hosted.partition.is_leader) == (0, True)


def test_new_epoch_begins_at_the_end_of_the_log(hosted: Hosted) -> None:
    hosted.lead()
    hosted.append(b"a", b"b")
    hosted.lead(epoch=4, partition_epoch=1)
    assert hosted.partition.leader_epoch_start_offset == 2
    assert hosted.partition.last_offset_for_leader_epoch(-1, 0, leader_only=True) == (0, 2)
    assert hosted.partition.last_offset_for_leader_epoch(-1, 4, leader_only=True) == (4, 2)


def test_follower_and_closed_partition_lead_nothing(hosted: Hosted) -> None:
    hosted.follow()
    assert error_of(hosted.append, b"a") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_of(hosted.partition.local_log_with_epoch, -1, leader_only=True) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted.partition.local_log_with_epoch(-1, leader_only=False) is hosted.partition.log
    hosted.partition.close()
    assert error_of(hosted.partition.local_log_with_epoch, -1, leader_only=False) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted.partition.in_sync.check_enough_replicas_reach_offset(0) == (False, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert not hosted.partition.in_sync.maybe_increment_high_watermark()


@pytest.mark.parametrize(("asked", "error"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_epoch_is_checked_before_leadership(hosted: Hosted, asked: int, error: ErrorCode) -> None:
    hosted.follow(epoch=3)
    assert error_of(hosted.partition.local_log_with_epoch, asked, leader_only=True) == error


def test_low_watermark_ignores_replicas_that_are_dead(hosted: Hosted) -> None:
    hosted.lead(replicas=(OWN_ID, 1))
    hosted.append(b"a", b"b")
    hosted.partition.in_sync.update_follower_fetch_state(1, LogOffsetMetadata(2), 0, 2, now_ms=0)
    assert hosted.partition.delete_records(2) == (2, 2), "broker 1 is not alive"
