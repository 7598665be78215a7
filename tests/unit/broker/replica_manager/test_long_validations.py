"""Appends whose records a worker process validates first, and what may happen meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.replica_manager.long_validations import STARTS_MAX, WORKERS
from odradek.broker.replica_manager.replica_manager import VALIDATIONS_MAX
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.ports import WorkerError
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import NOW, batch, marker, read_all
from tests.support.disks.managed_logs import DeferredWorkers
from tests.support.in_process.replication.replicas import TP, Replicas

NONE = ErrorCode.NONE
GZIP = 1
LONG = bytes(range(256)) * 300
SHORT = b"short"


class Recompressing:
    """A leader of a topic with `compression.type=gzip`; its workers work when the test calls for it."""

    def __init__(self, path: Path, **overrides: str) -> None:
        self.workers = DeferredWorkers()
        configs = {"compression.type": "gzip", **{key.replace("_", "."): value for key, value in overrides.items()}}
        self.replicas = Replicas(path, configs, workers=self.workers)
        self.replicas.lead()

    @property
    def log(self) -> UnifiedLog:
        log = self.replicas.manager.partition(TP).log
        assert log is not None
        return log

    def work(self, number: int = 0) -> None:
        """Do a submitted job; the request goes on in the next turn."""
        self.workers.jobs.pop(number).run()
        self.replicas.advance(1)

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in read_all(self.log)]


@pytest.fixture
def leader(tmp_path: Path) -> Recompressing:
    return Recompressing(tmp_path)


def test_much_is_recompressed_by_a_worker(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG), acks=-1)
    assert (answers, leader.log.log_end_offset, len(leader.workers.jobs)) == ([], 0, 1)
    leader.work()
    assert [(answer.error, answer.info.first_offset) for answer in answers] == [(NONE, 0)]
    assert leader.values == [LONG]
    (segment,) = leader.log.segments
    stored = RecordBatch(memoryview(Path(segment.records.path).read_bytes()))
    assert (stored.compression_type, stored.is_valid()) == (GZIP, True)


def test_little_is_recompressed_at_once(leader: Recompressing) -> None:
    assert [answer.error for answer in leader.replicas.append(batch(SHORT))] == [NONE]
    assert leader.workers.jobs == []


def test_records_of_a_coordinator_do_not_wait(leader: Recompressing) -> None:
    results: list[object] = []
    leader.replicas.manager.append(
        timeout_ms=1_000,
        required_acks=1,
        internal_topics_allowed=True,
        origin=AppendOrigin.COORDINATOR,
        records={TP: batch(LONG)},
        respond=results.append,
    )
    assert (len(results), leader.workers.jobs) == (1, [])


def test_others_append_meanwhile_and_offsets_follow_the_appends(leader: Recompressing) -> None:
    slow = leader.replicas.append(batch(LONG))
    quick = leader.replicas.append(batch(SHORT, SHORT))
    leader.work()
    assert [answer.info.first_offset for answer in (*quick, *slow)] == [0, 2]
    assert leader.values == [SHORT, SHORT, LONG]


def test_number_of_jobs_at_a_time_is_limited_and_the_first_come_first(leader: Recompressing) -> None:
    answers = [leader.replicas.append(batch(LONG)) for _ in range(WORKERS + 2)]
    assert len(leader.workers.jobs) == WORKERS
    for _ in answers:
        leader.work()
    assert [answer.info.first_offset for (answer,) in answers] == list(range(WORKERS + 2))


def test_leadership_is_checked_before_and_after(leader: Recompressing) -> None:
    waiting = leader.replicas.append(batch(LONG))
    leader.replicas.follow(epoch=1, partition_epoch=1)
    assert [answer.error for answer in leader.replicas.append(batch(LONG))] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert len(leader.workers.jobs) == 1, "a follower asks no worker"
    leader.work()
    assert [answer.error for answer in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert leader.log.log_end_offset == 0


def test_next_epoch_of_the_same_leader_is_that_of_the_records(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG))
    leader.replicas.lead(epoch=5, partition_epoch=1)
    leader.work()
    assert [answer.error for answer in answers] == [NONE]
    assert leader.log.latest_epoch == 5
    (segment,) = leader.log.segments
    assert RecordBatch(memoryview(Path(segment.records.path).read_bytes())).partition_leader_epoch == 5


def test_partition_that_is_deleted_meanwhile(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG))
    leader.replicas.stop()
    leader.work()
    assert [answer.error for answer in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_batch_that_is_sent_again_meanwhile_is_appended_once(leader: Recompressing) -> None:
    sent = batch(LONG, producer_id=7, producer_epoch=0, base_sequence=0)
    first, again = leader.replicas.append(sent), leader.replicas.append(sent)
    leader.work(1)
    leader.work()
    assert [(answer.error, answer.info.first_offset) for answer in (*again, *first)] == [(NONE, 0), (NONE, 0)]
    assert leader.values == [LONG]


def test_sequences_are_checked_at_the_append(leader: Recompressing) -> None:
    leader.replicas.append(batch(SHORT, producer_id=7, producer_epoch=0, base_sequence=0))
    answers = leader.replicas.append(batch(LONG, producer_id=7, producer_epoch=0, base_sequence=2))
    leader.work()
    assert [answer.error for answer in answers] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert leader.values == [SHORT]


def test_transaction_that_ends_meanwhile_takes_no_records(tmp_path: Path) -> None:
    leader = Recompressing(tmp_path)
    leader.log.state.producers.config = type(leader.log.state.producers.config)(transaction_verification=True)
    producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    guard = leader.log.maybe_start_transaction_verification(7, 0, 0)
    answers = leader.replicas.append(batch(LONG, base_sequence=0, **producer), guard=guard)
    leader.log.append_as_leader(marker(ControlRecordType.ABORT, producer_id=7), 0, origin=AppendOrigin.COORDINATOR)
    leader.work()
    assert [answer.error for answer in answers] == [ErrorCode.INVALID_TXN_STATE]


def test_change_of_the_codec_meanwhile_holds(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG))
    leader.replicas.log_manager.update_topic_config("t", {"compression.type": "zstd"})
    leader.work()
    assert answers == []
    leader.work()
    assert [answer.error for answer in answers] == [NONE]
    (segment,) = leader.log.segments
    assert RecordBatch(memoryview(Path(segment.records.path).read_bytes())).compression_type == 4


def test_config_that_changes_each_time_does_not_hold_an_append_up_for_ever(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG))
    for number in range(VALIDATIONS_MAX):
        leader.replicas.log_manager.update_topic_config("t", {"compression.type": ("zstd", "gzip")[number % 2]})
        leader.work()
    assert [answer.error for answer in answers] == [NONE]
    assert leader.workers.jobs == []


@pytest.mark.parametrize("failure", [WorkerError("died"), OSError(5, "Input/output error")])
def test_job_whose_worker_dies_is_done_once_more(leader: Recompressing, failure: Exception) -> None:
    answers = leader.replicas.append(batch(LONG))
    leader.workers.jobs.pop().done(failure)
    leader.work()
    assert [answer.error for answer in answers] == [NONE]


def test_job_that_kills_each_worker_is_refused_and_others_go_on(leader: Recompressing) -> None:
    answers = leader.replicas.append(batch(LONG))
    for _ in range(STARTS_MAX):
        leader.workers.jobs.pop().done(WorkerError("died"))
    leader.replicas.advance(1)
    assert [answer.error for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    others = [leader.replicas.append(batch(LONG)) for _ in range(WORKERS)]
    assert len(leader.workers.jobs) == WORKERS
    for _ in others:
        leader.work()
    assert [answer.error for (answer,) in others] == [NONE] * WORKERS


def test_invalid_records_are_refused_with_each_record(tmp_path: Path) -> None:
    leader = Recompressing(tmp_path, cleanup_policy="compact")
    answers = leader.replicas.append(batch(LONG, SHORT, key=None))
    leader.work()
    (answer,) = answers
    assert answer.error == ErrorCode.INVALID_RECORD
    assert [index for index, _ in answer.record_errors] == [0, 1]


def test_messages_of_old_clients_are_converted_by_a_worker(tmp_path: Path) -> None:
    workers = DeferredWorkers()
    replicas = Replicas(tmp_path, workers=workers)
    replicas.lead()
    values = [b"%d" % number for number in range(2_000)]
    messages = build_messages([SimpleRecord(NOW, b"k", value) for value in values], 1)
    answers = replicas.append(memoryview(messages))
    assert answers == []
    workers.jobs.pop().run()
    replicas.advance(1)
    assert [(answer.error, answer.info.last_offset) for answer in answers] == [(NONE, 1_999)]
    log = replicas.manager.partition(TP).log
    assert log is not None
    (segment,) = log.segments
    (stored,) = batches(memoryview(Path(segment.records.path).read_bytes()))
    assert stored.magic == 2
    assert [record.value for record in stored.records()] == values


def test_isr_that_shrinks_meanwhile_refuses_the_append(tmp_path: Path) -> None:
    leader = Recompressing(tmp_path, min_insync_replicas="2")
    leader.replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1])
    answers = leader.replicas.append(batch(LONG), acks=-1)
    leader.replicas.lead(epoch=2, partition_epoch=2, replicas=[0, 1], isr=[0])
    leader.work()
    assert [answer.error for answer in answers] == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert leader.log.log_end_offset == 0
