"""A Fetch that waits: what ends the wait. (Its bytes are counted in test_replica_manager.py.)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.broker.fetch.fetch_session import FetchSession, PartitionFetch
from odradek.broker.fetch.results import FetchParams, LogReadResult
from odradek.broker.partition.hosted_partitions import HostedPartitions
from odradek.broker.partition.isr import CommittedPartitionState
from odradek.broker.partition.partition import LogReadInfo, Partition
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.timer.sliced_work import run_through
from tests.support.disks.logs import append, batch
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas, fetch_through, offsets_of


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    replicas = Replicas(tmp_path)
    replicas.lead()
    return replicas


@pytest.mark.parametrize(
    "error", [ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_error_ends_the_wait_and_affects_no_other_request(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """Another client's Produce completes the wait, and must not fail because of it."""
    answers = replicas.fetch(0, max_wait_ms=500)

    def refuse(self: HostedPartitions, *named: object) -> None:
        raise KafkaError(error)

    monkeypatch.setattr(HostedPartitions, "partition_of_topic", refuse)
    (appended,) = replicas.append(batch(b"a"))
    assert appended.error == ErrorCode.NONE
    assert [answer.error for answer in answers] == [error]


@pytest.mark.parametrize("epoch", [1, 5])
def test_new_leader_epoch_ends_the_wait(replicas: Replicas, epoch: int) -> None:
    answers = replicas.fetch(0, max_wait_ms=500, epoch=0)
    replicas.lead(epoch=epoch, partition_epoch=1)
    assert [answer.error for answer in answers] == [ErrorCode.FENCED_LEADER_EPOCH]


def test_reader_without_an_epoch_goes_on_waiting_for_the_same_leader(replicas: Replicas) -> None:
    answers = replicas.fetch(0, max_wait_ms=500)
    replicas.lead(epoch=1, partition_epoch=1)
    assert answers == []
    replicas.append(batch(b"a"))
    assert [offsets_of(answer) for answer in answers] == [[0]]


def test_uncommitted_records_wake_a_follower_and_no_consumer(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1, 2])
    consumer = replicas.fetch(0, max_wait_ms=500)
    follower = replicas.fetch(0, max_wait_ms=500, replica_id=1)
    replicas.append(batch(b"a"))
    assert (len(consumer), len(follower)) == (0, 1)
    for broker_id in (1, 2):
        replicas.fetch(1, replica_id=broker_id)
    assert [offsets_of(answer) for answer in consumer] == [[0]]


def test_reader_of_committed_data_waits_for_the_end_of_the_transaction(replicas: Replicas) -> None:
    waiting = replicas.fetch(0, max_wait_ms=500, isolation=FetchIsolation.TXN_COMMITTED)
    log = replicas.manager.partition(TP).log
    assert log is not None
    assert waiting == []
    replicas.append(batch(b"plain"))
    assert [offsets_of(answer) for answer in waiting] == [[0]]


def test_a_gap_below_the_high_watermark_has_no_bytes(tmp_path: Path) -> None:
    """As compaction leaves it. The records behind it are not committed yet."""
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    log = replicas.manager.partition(TP).log
    assert log is not None
    log.append_as_follower(batch(b"b", base_offset=10, epoch=0))
    replicas.fetch(10, replica_id=1)
    assert log.high_watermark == 10
    waiting = replicas.fetch(5, max_wait_ms=500)
    assert waiting == []
    replicas.fetch(11, replica_id=1)
    assert [offsets_of(answer) for answer in waiting] == [[10]]


def test_topic_id_of_the_log_is_compared_only_when_one_was_named(replicas: Replicas) -> None:
    for topic_id, error in ((ZERO_UUID, 0), (TOPIC_ID, 0), (b"?" * 16, ErrorCode.INCONSISTENT_TOPIC_ID)):
        (answer,) = replicas.fetch(0, topic_id=topic_id)
        assert answer.error == error


@pytest.mark.parametrize("batches", [0, 1])
def test_partition_counts_for_no_more_than_may_be_read_of_it(replicas: Replicas, batches: int) -> None:
    size = len(batch(b"a"))
    answers = replicas.fetch(0, max_wait_ms=500, min_bytes=batches * size + 1, partition_bytes=batches * size)
    for _ in range(3):
        replicas.append(batch(b"a"))
    assert answers == []
    replicas.advance(501)
    assert [offsets_of(answer) for answer in answers] == [[0]]


@pytest.mark.parametrize(
    ("values", "last_fetched_epoch", "expected"),
    [([b"x"], -1, ErrorCode.OFFSET_OUT_OF_RANGE), ([b"x", b"y"], 2, (2, 1))],
    ids=["shorter now", "with other records"],
)
def test_truncated_log_ends_the_wait_of_a_reader_beyond_its_end(
    tmp_path: Path, values: list[bytes], last_fetched_epoch: int, expected: object
) -> None:
    replicas = Replicas(tmp_path)
    replicas.follow(epoch=4)
    log = replicas.manager.partition(TP).log
    assert log is not None
    append(log, b"a", b"b", b"c", epoch=2)
    waiting = replicas.fetch(
        3,
        max_wait_ms=500,
        last_fetched_epoch=last_fetched_epoch,
        isolation=FetchIsolation.LOG_END,
        leader_only=False,
    )
    log.truncate_to(1)
    append(log, *values, epoch=4)
    assert waiting == []
    replicas.manager.complete_delayed(TP)
    assert [answer.diverging_epoch or answer.error for answer in waiting] == [expected]


def test_nothing_is_left_behind(replicas: Replicas) -> None:
    for _ in range(3):
        replicas.fetch(0, max_wait_ms=500)
    replicas.append(batch(b"a"))
    assert replicas.manager.fetch_purgatory.num_delayed == 0
    assert replicas.manager.fetch_purgatory.watched == 0


# Many partitions


class Reader:
    """A follower that waits for several partitions at once; `reads` counts what is read of each log."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, **params: int) -> None:
        self.replicas = Replicas(path)
        self.tps = [TopicPartition("t", index) for index in range(3)]
        for tp in self.tps:
            self.replicas.lead(tp, replicas=[0, 1, 2])
        self.reads: list[int] = []
        read = Partition.read

        def counted(partition: Partition, **asked: object) -> LogReadInfo:
            self.reads.append(partition.topic_partition.partition)
            return read(partition, **asked)  # type: ignore[arg-type]

        monkeypatch.setattr(Partition, "read", counted)
        self.params = FetchParams(
            replica_id=1,
            isolation=FetchIsolation.LOG_END,
            leader_only=True,
            hard_max_bytes=False,
            **{"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, **params},
        )

    def session(self) -> FetchSession:
        """A session in which all partitions rest."""
        fetches = [PartitionFetch("t", ZERO_UUID, tp.partition, fetch_offset=0, max_bytes=1 << 20) for tp in self.tps]
        session = FetchSession(1, privileged=True, uses_topic_ids=False, now_ms=0)
        for fetch in fetches:
            session.add(fetch)
        reads = self.replicas.manager.reads

        def respond(results: Sequence[LogReadResult]) -> None:
            for result in results:
                result.fetch.sent_high_watermark = result.high_watermark
                result.fetch.sent_log_start_offset = result.log_start_offset
            run_through(reads.let_rest(self.params, results))

        fetch_through(reads, replace(self.params, max_wait_ms=0), session.to_read(), respond, session)
        assert session.to_read() == []
        self.reads.clear()
        return session

    def fetch_in(self, session: FetchSession, meanwhile: Callable[[], None] = lambda: None) -> list[list[int]]:
        """The partitions of each answer. `meanwhile` runs after the choice of partitions and before the first read."""
        to_read = session.to_read()
        meanwhile()
        answers: list[list[int]] = []
        fetch_through(
            self.replicas.manager.reads,
            self.params,
            to_read,
            lambda results: answers.append([result.fetch.partition for result in results]),
            session,
        )
        return answers

    def fetch(self, offset: int = 0) -> list[LogReadResult]:
        answers: list[LogReadResult] = []
        fetches = [
            PartitionFetch("t", ZERO_UUID, tp.partition, fetch_offset=offset, max_bytes=1 << 20) for tp in self.tps
        ]
        fetch_through(self.replicas.manager.reads, self.params, fetches, answers.extend)
        assert self.reads[:3] == [0, 1, 2]
        self.reads.clear()
        return answers

    def append(self, index: int) -> None:
        self.replicas.append(batch(b"a"), self.tps[index])


def test_only_changed_partitions_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, monkeypatch)
    answers = reader.fetch()
    reader.append(1)
    assert [offsets_of(answer) for answer in answers] == [[], [0], []]
    assert reader.reads == [1]
    assert [answer.fetch.partition for answer in answers] == [0, 1, 2]


def test_bytes_of_all_partitions_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(batch(b"a"))
    reader = Reader(tmp_path, monkeypatch, min_bytes=3 * size)
    answers = reader.fetch()
    for index in (2, 2):
        reader.append(index)
        assert answers == []
    reader.append(0)
    assert [offsets_of(answer) for answer in answers] == [[0], [], [0, 1]]


def test_at_the_time_out_it_returns_changes_that_wake_no_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, monkeypatch)
    for index in range(3):
        reader.append(index)
    for tp in reader.tps:
        reader.replicas.fetch(1, tp, replica_id=2)
    reader.reads.clear()
    answers = reader.fetch(1)  # moves the high watermarks
    log = reader.replicas.manager.partition(reader.tps[2]).log
    assert log is not None
    log.delete_records(1)
    reader.replicas.advance(501)
    assert [(answer.high_watermark, answer.log_start_offset) for answer in answers] == [(1, 0), (1, 0), (1, 1)]


def test_limit_of_the_answer_counts_the_second_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(batch(b"a"))
    reader = Reader(tmp_path, monkeypatch, max_bytes=size, min_bytes=2 * size)
    answers = reader.fetch()
    reader.append(2)
    reader.append(0)
    assert [offsets_of(answer) for answer in answers] == [[0], [], []]


def test_batch_that_does_not_fit_any_more_counts_as_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second partition's batch does not fit and is not sent, but its bytes count for `min_bytes`."""
    size = len(batch(b"a"))
    reader = Reader(tmp_path, monkeypatch, max_bytes=size + 1, min_bytes=size + 1)
    for index in (0, 1):
        reader.append(index)
    answers = reader.fetch()
    assert [offsets_of(answer) for answer in answers] == [[0], [], []]


# Sessions


def test_session_whose_partitions_rest_reads_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, monkeypatch)
    answers = reader.fetch_in(reader.session())
    purgatory = reader.replicas.manager.fetch_purgatory
    assert (answers, purgatory.num_delayed, purgatory.watched) == ([], 1, 2)
    reader.replicas.advance(501)
    assert (answers, reader.reads, purgatory.num_keys) == ([[]], [], 0)


def test_session_is_woken_by_the_partition_that_changes_and_reads_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch)
    session = reader.session()
    answers = reader.fetch_in(session)
    reader.append(1)
    assert (answers, reader.reads) == ([[1]], [1])
    assert reader.replicas.manager.fetch_purgatory.num_keys == 0
    assert reader.fetch_in(session) == [[1]], "it is read again until the follower fetches the next offset"


def test_session_returns_changes_after_the_choice_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read of one partition completes an append, whose callback appends to another partition, which rests."""
    reader = Reader(tmp_path, monkeypatch)
    answers = reader.fetch_in(reader.session(), meanwhile=lambda: reader.append(1))
    assert (answers, reader.reads) == ([[1]], [1])


def test_session_waits_for_more_of_partitions_that_changed_after_their_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch, min_bytes=2 * len(batch(b"a")))
    answers = reader.fetch_in(reader.session(), meanwhile=lambda: reader.append(1))
    assert answers == []
    reader.append(1)
    assert answers == [[1]]


def test_bytes_of_partitions_that_wake_up_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, monkeypatch, min_bytes=3 * len(batch(b"a")))
    answers = reader.fetch_in(reader.session())
    for index in (2, 2):
        reader.append(index)
        assert answers == []
    reader.append(0)
    assert answers == [[0, 2]]


def test_follower_out_of_sync_is_looked_at_with_every_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that has caught up is proposed for the ISR again after the controller refused it."""
    reader = Reader(tmp_path, monkeypatch)
    replicas, tp = reader.replicas, reader.tps[0]
    session = reader.session()
    replicas.manager.partition(tp).in_sync.state = CommittedPartitionState([0, 2])
    replicas.manager.partition(tp).news.announce()
    for proposals in (1, 2):
        reader.fetch_in(session)
        assert len(replicas.proposals) == proposals
        replicas.proposals[-1].respond(ErrorCode.INELIGIBLE_REPLICA)


def test_follower_that_the_controller_has_left_out_of_the_isr_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch)
    replicas, tp = reader.replicas, reader.tps[0]
    replicas.manager.partition(tp).in_sync.state = CommittedPartitionState([0, 1])
    session = reader.session()
    replicas.fetch(0, tp, replica_id=2)
    (proposal,) = replicas.proposals
    proposal.accept(isr=(0, 2))
    assert [fetch.partition for fetch in session.to_read()] == [0]


def test_follower_that_rests_in_one_session_and_asks_in_another_is_read_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch)
    first, second = reader.session(), reader.session()
    assert (len(first.awake), len(second.awake)) == (3, 0)


def test_follower_that_is_caught_up_stays_in_the_isr_by_fetching_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch)
    reader.replicas.manager.startup()
    session = reader.session()
    for _ in range(9):
        reader.fetch_in(session)
        reader.replicas.advance(10_000)
    assert {tp: reader.replicas.manager.partition(tp).in_sync.replicas[1].last_caught_up_ms for tp in reader.tps} == (
        dict.fromkeys(reader.tps, reader.replicas.disk.clock.monotonic_ms() - 10_000)
    )
    assert not any(1 not in proposal.proposed.isr for proposal in reader.replicas.proposals)
