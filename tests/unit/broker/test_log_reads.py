"""Reads for Fetch requests, over real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from tests.support.logs import batch
from tests.support.replicas import TOPIC_ID, TP, Replicas, offsets_of

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
    assert offsets_of(answer) == [0]


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


def test_reader_of_another_history_is_told_where_it_diverges(replicas: Replicas) -> None:
    replicas.lead(epoch=1)
    replicas.append(batch(b"a", b"b"))
    replicas.lead(epoch=3, partition_epoch=1)
    replicas.append(batch(b"c"))
    (answer,) = replicas.fetch(3, last_fetched_epoch=2)
    assert (answer.error, answer.diverging_epoch, answer.size_in_bytes) == (NONE, (1, 2), 0)
