"""A Fetch that waits: what ends the wait. (Its bytes are counted in test_replica_manager.py.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch_session import PartitionFetch
from odradek.broker.partition import Partition, ReadInfo
from odradek.broker.replica_manager import ReplicaManager
from odradek.broker.replica_results import FetchParams, ReadResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.fetch_data import FetchIsolation
from tests.support.logs import append, batch
from tests.support.replicas import TOPIC_ID, TP, Replicas, offsets_of


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    replicas = Replicas(tmp_path)
    replicas.lead()
    return replicas


@pytest.mark.parametrize(
    "error", [ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_refusal_ends_the_wait_and_hurts_nobody_else(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """The wait is ended from within somebody else's Produce, which must not fail for it."""
    answers = replicas.fetch(0, max_wait_ms=500)

    def refuse(self: ReplicaManager, fetch: object) -> None:
        raise KafkaError(error)

    monkeypatch.setattr(ReplicaManager, "partition_of", refuse)
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


def test_topic_id_of_the_log_is_compared_only_when_one_was_named(replicas: Replicas) -> None:
    for topic_id, error in ((ZERO_UUID, 0), (TOPIC_ID, 0), (b"?" * 16, ErrorCode.INCONSISTENT_TOPIC_ID)):
        (answer,) = replicas.fetch(0, topic_id=topic_id)
        assert answer.error == error


def test_partition_counts_for_no_more_than_may_be_read_of_it(replicas: Replicas) -> None:
    size = len(batch(b"a"))
    answers = replicas.fetch(0, max_wait_ms=500, min_bytes=2 * size, partition_bytes=size)
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
def test_log_that_was_cut_ends_the_wait_of_who_has_read_further(
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

        def counted(partition: Partition, **asked: object) -> ReadInfo:
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

    def fetch(self, offset: int = 0) -> list[ReadResult]:
        answers: list[ReadResult] = []
        fetches = [
            PartitionFetch("t", ZERO_UUID, tp.partition, fetch_offset=offset, max_bytes=1 << 20) for tp in self.tps
        ]
        self.replicas.manager.reads.fetch(self.params, fetches, answers.extend)
        assert self.reads[:3] == [0, 1, 2]
        self.reads.clear()
        return answers

    def append(self, index: int) -> None:
        self.replicas.append(batch(b"a"), self.tps[index])


def test_only_what_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_at_the_end_of_its_time_it_tells_what_nobody_was_woken_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, monkeypatch)
    for index in range(3):
        reader.append(index)
    for tp in reader.tps:
        reader.replicas.fetch(1, tp, replica_id=2)
    reader.reads.clear()
    answers = reader.fetch(1)  # by which the high watermarks move
    log = reader.replicas.manager.partition(reader.tps[2]).log
    assert log is not None
    log.delete_records(1)
    reader.replicas.advance(501)
    assert [(answer.high_watermark, answer.log_start_offset) for answer in answers] == [(1, 0), (1, 0), (1, 1)]


def test_limit_of_the_answer_holds_over_what_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(batch(b"a"))
    reader = Reader(tmp_path, monkeypatch, max_bytes=size, min_bytes=2 * size)
    answers = reader.fetch()
    reader.append(2)
    reader.append(0)
    assert [offsets_of(answer) for answer in answers] == [[0], [], []]


def test_batch_that_does_not_fit_any_more_counts_as_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second partition's batch is not sent by halves, but it is there: nobody has to wait for more."""
    size = len(batch(b"a"))
    reader = Reader(tmp_path, monkeypatch, max_bytes=size + 1, min_bytes=size + 1)
    for index in (0, 1):
        reader.append(index)
    answers = reader.fetch()
    assert [offsets_of(answer) for answer in answers] == [[0], [], []]
