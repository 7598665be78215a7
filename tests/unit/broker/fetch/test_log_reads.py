"""Reads for Fetch requests, over real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.replica_selector import ReplicaSelector, rack_aware
from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from odradek.protocol.errors import ErrorCode
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas, offsets_of

NONE = ErrorCode.NONE


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def test_fetch_returns_what_is_committed(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    (answer,) = replicas.fetch(0)
    assert (answer.size_in_bytes, answer.high_watermark) == (0, 0)
    replicas.fetch(1, replica_id=1)
    (answer,) = replicas.fetch(0)
    assert (offsets_of(answer), answer.size_in_bytes) == ([0], len(batch(b"a")))


def test_waiting_fetch_is_answered_by_an_append(replicas: Replicas) -> None:
    replicas.lead()
    answers = replicas.fetch(0, max_wait_ms=500)
    assert answers == []
    replicas.append(batch(b"a"))
    assert offsets_of(answers[0]) == [0]
    assert replicas.manager.fetch_purgatory.num_delayed == 0


def test_waiting_fetch_counts_bytes_over_several_appends(replicas: Replicas) -> None:
    replicas.lead()
    size = len(batch(b"a"))
    answers = replicas.fetch(0, max_wait_ms=500, min_bytes=2 * size)
    replicas.append(batch(b"a"))
    assert answers == []
    replicas.append(batch(b"a"))
    assert offsets_of(answers[0]) == [0, 1]


def test_waiting_fetch_is_answered_empty_when_time_is_up(replicas: Replicas) -> None:
    replicas.lead()
    answers = replicas.fetch(0, max_wait_ms=500)
    replicas.advance(501)
    assert [(answer.error, answer.size_in_bytes) for answer in answers] == [(NONE, 0)]


def test_waiting_fetch_is_answered_when_the_partition_is_deleted(replicas: Replicas) -> None:
    replicas.lead()
    answers = replicas.fetch(0, max_wait_ms=500)
    assert replicas.stop() == NONE
    assert [answer.error for answer in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_waiting_fetch_is_answered_when_a_segment_was_rolled(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"segment.bytes": "200"})
    replicas.lead()
    replicas.append(batch(b"x" * 80))
    answers = replicas.fetch(0, max_wait_ms=500, min_bytes=1 << 20)
    assert answers == []
    replicas.append(batch(b"x" * 80))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("epoch", "error"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, NONE), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_leader_epoch_of_the_reader_has_to_be_ours(replicas: Replicas, epoch: int, error: ErrorCode) -> None:
    replicas.lead(epoch=5)
    assert [answer.error for answer in replicas.fetch(0, epoch=epoch)] == [error]


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "expected"),
    [
        (4, 2, None),
        (4, 3, (2, 4)),  # it ends at the end of epoch 2, but its last record is of another epoch
        (5, 2, (2, 4)),
        (6, 5, None),
        (7, 5, (5, 6)),
        (1, 3, ErrorCode.OFFSET_OUT_OF_RANGE),  # below the log start no epoch is known
        (6, 6, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_reader_gets_the_epoch_at_which_its_log_diverges(
    replicas: Replicas, offset: int, last_fetched_epoch: int, expected: object
) -> None:
    """Epoch 2 from 0 to 4, epoch 5 from 4 to 6; the log start is 2."""
    replicas.lead(epoch=2)
    replicas.append(batch(*[b"x"] * 4))
    replicas.lead(epoch=5, partition_epoch=1)
    replicas.append(batch(b"x", b"x"))
    replicas.manager.delete_records(0, {TP: 2}, lambda results: None)
    (answer,) = replicas.fetch(
        offset, epoch=5, last_fetched_epoch=last_fetched_epoch, max_wait_ms=0 if expected is None else 500
    )
    assert (answer.diverging_epoch or answer.error or None) == expected
    assert answer.fetched is None or expected is None


def test_topic_id_of_another_topic_is_refused(replicas: Replicas) -> None:
    replicas.lead()
    assert [answer.error for answer in replicas.fetch(0, topic_id=b"\x09" * 16)] == [ErrorCode.INCONSISTENT_TOPIC_ID]
    assert [answer.error for answer in replicas.fetch(0, topic_id=TOPIC_ID)] == [NONE]


def test_offset_out_of_range(replicas: Replicas) -> None:
    replicas.lead()
    assert [answer.error for answer in replicas.fetch(1)] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_first_partition_with_data_returns_a_whole_batch_whatever_the_limit(replicas: Replicas) -> None:
    replicas.lead()
    replicas.append(batch(b"x" * 500))
    assert offsets_of(replicas.fetch(0, max_bytes=1, partition_bytes=1)[0]) == [0]


def test_oldest_clients_get_no_oversize_batch(replicas: Replicas) -> None:
    replicas.lead()
    replicas.append(batch(b"x" * 500))
    (answer,) = replicas.fetch(0, max_bytes=1 << 20, partition_bytes=100, hard_max_bytes=True)
    assert answer.size_in_bytes <= 100


def test_forged_follower_moves_nothing(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    assert [answer.error for answer in replicas.fetch(1, replica_id=9)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert [answer.error for answer in replicas.fetch(1, replica_id=9, epoch=0)] == [ErrorCode.UNKNOWN_LEADER_EPOCH]
    assert replicas.manager.partition(TP).log.high_watermark == 0  # type: ignore[union-attr]


def test_reader_of_another_history_gets_the_diverging_epoch(replicas: Replicas) -> None:
    replicas.lead(epoch=1)
    replicas.append(batch(b"a", b"b"))
    replicas.lead(epoch=3, partition_epoch=1)
    replicas.append(batch(b"c"))
    (answer,) = replicas.fetch(3, last_fetched_epoch=2)
    assert (answer.error, answer.diverging_epoch, answer.size_in_bytes) == (NONE, (1, 2), 0)


# Consumers and followers


def test_consumer_is_sent_to_the_replica_of_its_rack_and_gets_no_records(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, replica_selector=rack_aware)
    replicas.lead(replicas=[0, 1, 2])
    replicas.append(batch(b"a"))
    for follower in (1, 2):
        replicas.fetch(1, replica_id=follower, log_start_offset=0)
    (answer,) = replicas.fetch(0, rack="rack1", max_wait_ms=500)
    assert (answer.preferred_read_replica, answer.size_in_bytes, answer.error) == (1, 0, NONE)
    assert (answer.high_watermark, answer.log_start_offset, answer.last_stable_offset) == (1, 0, 1)
    for reader in ({"rack": "rack0"}, {"rack": "rack9"}, {"rack": ""}, {}, {"replica_id": 1, "rack": "rack1"}):
        (answer,) = replicas.fetch(0, **reader)  # type: ignore[arg-type]
        assert (answer.preferred_read_replica, offsets_of(answer)) == (-1, [0])


def test_consumer_that_is_redirected_must_name_the_present_epoch(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, replica_selector=rack_aware)
    replicas.lead(replicas=[0, 1], epoch=3)
    replicas.fetch(0, replica_id=1, log_start_offset=0)
    assert replicas.fetch(0, rack="rack1", epoch=2)[0].error == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.fetch(0, rack="rack1", epoch=3)[0].preferred_read_replica == 1


def test_no_consumer_is_redirected_without_a_selector(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    replicas.fetch(1, replica_id=1, log_start_offset=0)
    (answer,) = replicas.fetch(0, rack="rack1")
    assert (answer.preferred_read_replica, offsets_of(answer)) == (-1, [0])


def follower(path: Path, selector: ReplicaSelector | None = None) -> Replicas:
    """It has three records, and the first one is below the high watermark."""
    replicas = Replicas(path, replica_selector=selector)
    replicas.lead(replicas=[0, 1])
    for _ in range(3):
        replicas.append(batch(b"a"))
    replicas.fetch(1, replica_id=1)
    replicas.follow(epoch=1, partition_epoch=1)
    return replicas


def test_follower_serves_consumers_up_to_its_high_watermark(tmp_path: Path) -> None:
    replicas = follower(tmp_path, rack_aware)
    (answer,) = replicas.fetch(0, leader_only=False, rack="rack1", epoch=1)
    assert (answer.error, answer.high_watermark, offsets_of(answer)) == (NONE, 1, [0])
    (answer,) = replicas.fetch(2, leader_only=False, rack="rack1")
    assert (answer.error, answer.size_in_bytes) == (NONE, 0), "above the high watermark is not out of range"
    assert replicas.fetch(4, leader_only=False, rack="rack1")[0].error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert replicas.fetch(0, leader_only=False, rack="rack1", epoch=0)[0].error == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.fetch(0)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replicas.fetch(0, replica_id=1)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_consumer_waits_at_a_follower_for_its_high_watermark(tmp_path: Path) -> None:
    replicas = follower(tmp_path)
    waiting = replicas.fetch(1, leader_only=False, rack="", max_wait_ms=500)
    assert waiting == []
    log = replicas.manager.partition(TP).log
    assert log is not None
    log.update_high_watermark(2)
    replicas.manager.complete_delayed(TP)
    assert [offsets_of(answer) for answer in waiting] == [[1]]


def test_a_partition_of_a_fetch_is_counted_once_however_long_it_waits_and_however_it_ends(replicas: Replicas) -> None:
    stats = replicas.manager.partitions.topic_stats = BrokerTopicStats()
    replicas.lead(epoch=5)
    counters = stats.topics[TP.topic]
    answers = replicas.fetch(0, max_wait_ms=500)
    assert (answers, counters.total_fetch_requests) == ([], 1)
    replicas.append(batch(b"a"))
    assert (len(answers), counters.total_fetch_requests) == (1, 1)
    replicas.fetch(0, epoch=4)
    assert (counters.total_fetch_requests, counters.failed_fetch_requests) == (2, 0), (
        "clients meet it in normal operation"
    )
