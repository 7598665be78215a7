"""The fields that a partition and its in-sync replicas share, also before the first LeaderAndIsr."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.partition.leadership import NO_LEADER_EPOCH, Leadership
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas


def test_no_leader_at_first(tmp_path: Path) -> None:
    leadership = Leadership(TP, Replicas(tmp_path).manager.partitions._environment)
    assert not leadership.is_leader
    assert (leadership.leader_id, leadership.leader_epoch, leadership.partition_epoch) == (None, NO_LEADER_EPOCH, -1)
    assert leadership.log is leadership.topic_id is leadership.leader_epoch_start_offset is None


def test_a_log_from_before_has_its_topic_id(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    log = replicas.log_manager.get_or_create_log(TP, TOPIC_ID, is_new=True)
    leadership = Leadership(TP, replicas.manager.partitions._environment)
    assert leadership.log is None
    assert leadership.topic_id == log.topic_id == TOPIC_ID


def test_in_sync_replicas_share_the_leader(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(epoch=3, partition_epoch=5)
    partition = replicas.manager.partition(TP)
    assert partition.in_sync._leadership is partition
    assert partition.is_leader
    assert (partition.leader_epoch, partition.partition_epoch, partition.leader_epoch_start_offset) == (3, 5, 0)
