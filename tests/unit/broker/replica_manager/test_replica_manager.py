"""Appends, reads and control requests, over real logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from odradek.broker.replica_manager.replica_manager import STEP_MS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.checkpoint_files import HIGH_WATERMARK_FILE
from tests.support.disks.logs import DeferredIoPool, batch
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas

OTHER = TopicPartition("t", 1)
NONE = ErrorCode.NONE


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


# Produce


def test_alone_in_the_isr_an_append_is_committed_at_once(replicas: Replicas) -> None:
    replicas.lead()
    (answer,) = replicas.append(batch(b"a", b"b"), acks=-1)
    assert (answer.error, answer.info.first_offset, answer.info.last_offset) == (NONE, 0, 1)
    assert replicas.manager.produce_purgatory.num_delayed == 0


def test_acks_all_waits_for_the_follower(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    answers = replicas.append(batch(b"a"), acks=-1)
    assert answers == []
    replicas.fetch(1, replica_id=1)
    assert [answer.error for answer in answers] == [NONE]
    assert replicas.manager.produce_purgatory.num_delayed == 0


def test_acks_one_does_not_wait(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    assert [answer.error for answer in replicas.append(batch(b"a"), acks=1)] == [NONE]


def test_acks_all_times_out(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    answers = replicas.append(batch(b"a"), acks=-1, timeout_ms=100)
    replicas.advance(99)
    assert answers == []
    replicas.advance(2)
    assert [answer.error for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT]


def test_waiting_produce_is_answered_when_leadership_moves(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    answers = replicas.append(batch(b"a"), acks=-1)
    replicas.follow(epoch=1, partition_epoch=1)
    assert [answer.error for answer in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_too_small_an_isr_refuses_acks_all_before_the_append(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead(replicas=[0, 1], isr=[0])
    assert [answer.error for answer in replicas.append(batch(b"a"), acks=-1)] == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert [answer.error for answer in replicas.append(batch(b"a"), acks=1)] == [NONE]
    assert replicas.manager.partition(TP).log.log_end_offset == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("acks", [-2, 2, 7])
def test_acks_other_than_the_three_are_refused(replicas: Replicas, acks: int) -> None:
    replicas.lead()
    assert [answer.error for answer in replicas.append(batch(b"a"), acks=acks)] == [ErrorCode.INVALID_REQUIRED_ACKS]


@pytest.mark.parametrize(("append_ms", "pauses"), [(0, 0), (STEP_MS - 1, 1), (STEP_MS, 2)])
def test_appends_to_several_partitions_pause_when_a_step_has_taken_long(
    replicas: Replicas, append_ms: int, pauses: int
) -> None:
    class SlowRecords(dict[TopicPartition, memoryview]):
        def items(self) -> Iterator[tuple[TopicPartition, memoryview]]:  # type: ignore[override]
            for item in super().items():
                yield item
                replicas.disk.clock.advance(append_ms)

    partitions = [TopicPartition("t", number) for number in range(3)]
    for tp in partitions:
        replicas.lead(tp)
    answers: list[LogAppendResult] = []
    work = replicas.manager.append_in_steps(
        timeout_ms=1_000,
        required_acks=-1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        records=SlowRecords(dict.fromkeys(partitions, batch(b"a"))),
        respond=lambda results: answers.extend(results.values()),
    )
    assert list(work) == [None] * pauses
    assert [answer.error for answer in answers] == [NONE] * 3


def test_an_append_without_records_counts_no_messages(replicas: Replicas) -> None:
    """A Produce of version 0 to 2 may have empty records for a partition."""
    replicas.lead()
    replicas.manager.partitions.topic_stats = stats = BrokerTopicStats()
    assert [answer.error for answer in replicas.append(memoryview(b""))] == [NONE]
    replicas.append(batch(b"a", b"b"))
    counters = stats.topics[TP.topic]
    assert (counters.messages_in, counters.total_produce_requests) == (2, 2)


def test_internal_topics_are_refused_to_clients(replicas: Replicas) -> None:
    internal = TopicPartition("__consumer_offsets", 0)
    replicas.lead(internal)
    assert replicas.append(batch(b"a"), internal)[0].error == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert replicas.append(batch(b"a"), internal, internal=True)[0].error == NONE


def test_unknown_partition_and_one_of_another_broker_differ(replicas: Replicas) -> None:
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas.know(TP, leader=1, replicas=[1])
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_follower_refuses_appends(replicas: Replicas) -> None:
    replicas.follow()
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_refused_records_name_each_record(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"cleanup.policy": "compact"})
    replicas.lead()
    (answer,) = replicas.append(batch(b"a", b"b", key=None))
    assert answer.error == ErrorCode.INVALID_RECORD
    assert [index for index, _ in answer.record_errors] == [0, 1]
    assert answer.info.log_start_offset == 0


# DeleteRecords


def test_delete_records_waits_for_the_followers_log_start(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b"))
    replicas.fetch(2, replica_id=1)
    answers: list[tuple[ErrorCode, int]] = []
    replicas.manager.delete_records(
        1_000, {TP: -1}, lambda results: answers.append((results[TP].error, results[TP].low_watermark))
    )
    assert answers == []
    replicas.fetch(2, replica_id=1, log_start_offset=2)
    assert answers == [(NONE, 2)]


@pytest.mark.parametrize(
    ("offset", "error"), [(2, NONE), (3, ErrorCode.OFFSET_OUT_OF_RANGE), (-2, ErrorCode.OFFSET_OUT_OF_RANGE)]
)
def test_records_are_deleted_up_to_the_high_watermark_at_most(
    replicas: Replicas, offset: int, error: ErrorCode
) -> None:
    replicas.lead()
    replicas.append(batch(b"a", b"b"))
    answers: list[ErrorCode] = []
    replicas.manager.delete_records(1_000, {TP: offset}, lambda results: answers.append(results[TP].error))
    assert answers == [error]


def test_records_of_a_compacted_log_are_not_deleted(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"cleanup.policy": "compact"})
    replicas.lead()
    answers: list[ErrorCode] = []
    replicas.manager.delete_records(1_000, {TP: 0}, lambda results: answers.append(results[TP].error))
    assert answers == [ErrorCode.POLICY_VIOLATION]


# Failed directories, checkpoints


def test_high_watermarks_are_checkpointed_only_after_the_first_leader_and_isr(replicas: Replicas) -> None:
    path = replicas.disk.path / HIGH_WATERMARK_FILE
    replicas.advance(60_000)
    assert not path.exists()
    replicas.lead()
    replicas.append(batch(b"a", b"b"))
    replicas.advance(5_001)
    assert path.read_text() == "0\n1\nt 0 2\n"


def test_replica_begins_at_the_high_watermark_of_its_last_checkpoint(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b", b"c"))
    replicas.fetch(2, replica_id=1)
    replicas.manager.shutdown()
    replicas.log_manager.shutdown()
    again = Replicas(replicas.disk.path)
    again.follow()
    assert again.manager.partition(TP).log.high_watermark == 2  # type: ignore[union-attr]


def test_partitions_of_a_failed_directory_are_storage_errors(replicas: Replicas) -> None:
    replicas.lead()
    answers = replicas.fetch(0, max_wait_ms=500)
    replicas.manager.handle_log_dir_failure([TP])
    assert [answer.error for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.lead(epoch=9) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.stop() == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_that_is_not_hosted_when_its_directory_fails_does_not_take_its_partition_offline(tmp_path: Path) -> None:
    """After a start, until the first LeaderAndIsr. A topic of this name that is created later gets a log elsewhere."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    replicas = Replicas(tmp_path / "a", log_dirs=[tmp_path / "b"])
    replicas.lead()
    unhosted = replicas.log_manager.get_or_create_log(OTHER, TOPIC_ID, is_new=True)
    hosted = replicas.manager.partition(TP).log
    assert hosted is not None
    unhosted.log_dir.fail("test", OSError(5, "Input/output error"))
    assert replicas.manager.partitions.is_offline(TP) == (hosted.log_dir is unhosted.log_dir)
    assert not replicas.manager.partitions.is_offline(OTHER)
    assert replicas.lead(OTHER) == NONE
    assert replicas.manager.partition(OTHER).log is not unhosted


def test_flush_policy_makes_the_answer_wait_for_the_disk(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"flush.messages": "1"})
    replicas.lead()
    (answer,) = replicas.append(batch(b"a"))
    assert (answer.error, answer.info.flush_required) == (NONE, True)
    assert replicas.manager.partition(TP).log.recovery_point == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_batch_that_is_sent_again_is_acknowledged_when_the_first_one_is_on_the_disk(
    tmp_path: Path, acks: int
) -> None:
    pool = DeferredIoPool()
    replicas = Replicas(tmp_path, {"flush.messages": "1"}, io_pool=pool)
    replicas.lead()
    pool.run_all()
    records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    first, again = replicas.append(records, acks=acks), replicas.append(records, acks=acks)
    assert (first, again) == ([], [])
    pool.run_all()
    assert [(answer.error, answer.info.first_offset) for answer in (*first, *again)] == [(NONE, 0), (NONE, 0)]
    assert replicas.append(records, acks=acks), "it is on the disk"


def test_failing_read_takes_the_directory_offline_and_answers(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas.lead()
    replicas.append(batch(b"a"))
    log = replicas.manager.partition(TP).log
    assert log is not None

    def fail(*_: object, **__: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(log.segments.active), "read", fail)
    assert [result.error for result in replicas.fetch(0)] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert replicas.append(batch(b"a"))[0].error == ErrorCode.KAFKA_STORAGE_ERROR


def test_produce_that_waits_for_a_flush_is_answered_when_the_directory_fails(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    replicas = Replicas(tmp_path, {"flush.messages": "1"}, io_pool=pool)
    replicas.lead()
    pool.run_all()
    answers = replicas.append(batch(b"a"), acks=-1)
    assert not answers
    replicas.log_manager.on_log_dir_failure = lambda _, gone: replicas.manager.handle_log_dir_failure(gone)
    replicas.log_manager.log_dirs[0].fail("test", OSError(5, "Input/output error"))
    assert [answer.error for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
    pool.run_all()
    assert len(answers) == 1


class TruncatedMeanwhile(dict[TopicPartition, memoryview]):
    """Records for two partitions. Between the two appends the time of a step passes."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__({TP: batch(b"a", b"b"), OTHER: batch(b"c")})
        self.replicas = replicas

    def items(self) -> Iterator[tuple[TopicPartition, memoryview]]:  # type: ignore[override]
        for item in super().items():
            yield item
            self.replicas.disk.clock.advance(STEP_MS)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["truncated", "deleted"])
def test_a_log_that_is_cut_between_the_steps_of_an_append_is_not_flushed_beyond_its_end(
    tmp_path: Path, is_deleted: bool
) -> None:
    pool = DeferredIoPool()
    replicas = Replicas(tmp_path, {"flush.messages": "1"}, io_pool=pool)
    for tp in (TP, OTHER):
        replicas.lead(tp, replicas=[0, 1])
    pool.run_all()
    log = replicas.manager.partition(TP).log
    assert log is not None
    answers: dict[TopicPartition, LogAppendResult] = {}
    work = replicas.manager.append_in_steps(
        timeout_ms=1_000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        records=TruncatedMeanwhile(replicas),
        respond=answers.update,
    )
    next(work)
    if is_deleted:
        replicas.stop(delete=True)
    else:
        replicas.follow(epoch=1, partition_epoch=1)
        log.truncate_to(1)
    assert list(work) == []
    assert not answers, "the other partition's flush is under way"
    pool.run_all()
    assert log.recovery_point <= log.log_end_offset
    assert answers[OTHER].error == NONE
    assert answers[TP].error == (ErrorCode.KAFKA_STORAGE_ERROR if is_deleted else NONE)
