"""LeaderAndIsr and StopReplica requests, over real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas

NONE = ErrorCode.NONE


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def test_newer_leader_epochs_are_applied_and_others_refused(replicas: Replicas) -> None:
    assert replicas.lead(epoch=3) == NONE
    assert replicas.lead(epoch=3) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.lead(epoch=2) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.follow(epoch=4, partition_epoch=1) == NONE
    assert (replicas.leaders, replicas.followers) == ([TP], [TP])


def test_state_that_does_not_name_this_broker_is_refused(replicas: Replicas) -> None:
    assert replicas.state(leader=1, replicas=[1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topic_id_may_not_change(replicas: Replicas) -> None:
    replicas.lead()
    assert replicas.lead(epoch=1, topic_id=b"\x09" * 16) == ErrorCode.INCONSISTENT_TOPIC_ID


def test_controller_without_topic_ids_is_told_of_no_error_where_a_follower_has_one(replicas: Replicas) -> None:
    replicas.follow(epoch=1)
    assert replicas.follow(epoch=1, topic_id=ZERO_UUID) == NONE
    replicas.lead(epoch=2, partition_epoch=1)
    assert replicas.lead(epoch=2, partition_epoch=1, topic_id=ZERO_UUID) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.manager.partition(TP).topic_id == TOPIC_ID


@pytest.mark.parametrize("leads", [True, False])
def test_log_of_a_topic_that_had_the_name_before_is_not_taken_for_the_new_ones(replicas: Replicas, leads: bool) -> None:
    replicas.log_manager.get_or_create_log(TP, b"\x09" * 16, is_new=True)
    for _ in range(2):
        assert (replicas.lead if leads else replicas.follow)(epoch=1) == ErrorCode.INCONSISTENT_TOPIC_ID
    assert not replicas.fetchers.followed
    assert replicas.fetch(0)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_older_controllers_are_refused_whatever_they_ask(replicas: Replicas) -> None:
    replicas.lead(controller_epoch=5)
    with pytest.raises(KafkaError) as refused:
        replicas.lead(epoch=1, controller_epoch=4)
    assert refused.value.code == ErrorCode.STALE_CONTROLLER_EPOCH
    with pytest.raises(KafkaError):
        replicas.stop(controller_epoch=4)
    with pytest.raises(KafkaError):
        replicas.manager.controller_requests.check_metadata_epoch(4)
    replicas.manager.controller_requests.check_metadata_epoch(6)
    assert replicas.manager.controller_requests.controller_epoch == 6


def test_leading_again_starts_an_epoch_at_the_log_end(replicas: Replicas) -> None:
    replicas.lead(epoch=0)
    replicas.append(batch(b"a", b"b"))
    replicas.lead(epoch=7, partition_epoch=1)
    assert replicas.manager.partition(TP).last_offset_for_leader_epoch(-1, 0, leader_only=True) == (0, 2)
    assert replicas.manager.partition(TP).leader_epoch_start_offset == 2


def test_stopping_with_an_older_epoch_is_fenced(replicas: Replicas) -> None:
    replicas.lead(epoch=5)
    assert replicas.stop(epoch=4) == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.stop(epoch=5, delete=False) == NONE
    assert replicas.manager.hosted(TP) is not None
    assert replicas.stop(epoch=-1) == NONE
    assert replicas.manager.hosted(TP) is None
    assert replicas.log_manager.get_log(TP) is None


def test_stopping_what_is_not_hosted_succeeds(replicas: Replicas) -> None:
    assert replicas.stop() == NONE


def test_partition_whose_log_may_lie_in_a_failed_directory_is_offline(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    replicas = Replicas(tmp_path / "good", log_dirs=[tmp_path / "file"])
    assert replicas.lead(is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.manager.partitions.is_offline(TP)
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.fetch(0)[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    other = TopicPartition("t", 1)
    assert replicas.follow(other, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.manager.partitions.is_offline(other)
    assert replicas.lead(TopicPartition("t", 2)) == NONE


def test_partition_whose_log_has_no_room_is_tried_again(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}))
    replicas = Replicas(tmp_path, fs=fs)
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    assert replicas.lead() == ErrorCode.KAFKA_STORAGE_ERROR
    assert not replicas.manager.partitions.is_offline(TP)
    assert replicas.manager.hosted(TP) is None
    fs.mend()
    replicas.log_manager.log_dirs[0].check_space()
    assert replicas.lead() == NONE
    assert replicas.append(batch(b"a"))[0].error == NONE


# Following


def test_a_follower_fetches_under_each_new_epoch(replicas: Replicas) -> None:
    replicas.follow(leader=1, epoch=3)
    assert replicas.fetchers.followed == {TP: (1, 3)}
    replicas.follow(leader=2, epoch=4, partition_epoch=1)
    assert replicas.fetchers.followed == {TP: (2, 4)}


def test_a_leader_fetches_no_more(replicas: Replicas) -> None:
    replicas.follow(leader=1)
    replicas.lead(epoch=1, partition_epoch=1)
    assert not replicas.fetchers.followed


@pytest.mark.parametrize("delete", [True, False])
def test_a_stopped_replica_fetches_no_more(replicas: Replicas, delete: bool) -> None:
    replicas.follow(leader=1)
    replicas.stop(delete=delete)
    assert not replicas.fetchers.followed


def test_a_replica_in_a_failed_directory_fetches_no_more(replicas: Replicas) -> None:
    replicas.follow(leader=1)
    replicas.manager.handle_log_dir_failure([TP])
    assert not replicas.fetchers.followed


def test_a_leader_that_is_not_alive_is_not_followed_until_the_controller_says_so_again(replicas: Replicas) -> None:
    replicas.follow(leader=1, epoch=3)
    assert replicas.follow(leader=2, epoch=4, partition_epoch=1, alive=[1]) == NONE
    partition = replicas.manager.partition(TP)
    assert (partition.leader_id, partition.leader_epoch) == (1, 3), "unchanged"
    assert replicas.fetchers.followed == {TP: (1, 3)}
    assert replicas.followers == [TP]
    replicas.know(TP, leader=2, replicas=[2])
    assert replicas.fetchers.followed == {TP: (1, 3)}, "metadata alone starts no fetch"
    assert replicas.follow(leader=2, epoch=4, partition_epoch=1) == NONE
    assert replicas.fetchers.followed == {TP: (2, 4)}


def test_a_log_is_made_though_the_leader_is_not_alive(replicas: Replicas) -> None:
    assert replicas.follow(leader=1, alive=[]) == NONE
    assert replicas.log_manager.get_log(TP) is not None
    assert not replicas.fetchers.followed
