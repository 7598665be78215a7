"""Many fetches wait for one partition: the order in which they are woken."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pytest

from odradek.broker.fetch.delayed_fetch import DelayedFetch
from odradek.broker.fetch.fetch_wakeups import AT_ONCE, IN_A_SLICE
from odradek.broker.fetch.results import LogAppendResult, LogReadResult
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import Replicas

CONSUMERS = AT_ONCE + 2 * IN_A_SLICE + 5


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    replicas = Replicas(tmp_path)
    replicas.lead()
    return replicas


def answered(waiting: list[list[LogReadResult]]) -> int:
    return sum(map(bool, waiting))


def test_few_are_woken_where_the_change_is_made_and_the_others_in_slices(replicas: Replicas) -> None:
    waiting = [replicas.fetch(0, max_wait_ms=10_000) for _ in range(CONSUMERS)]
    replicas.append(batch(b"a"))
    woken = [answered(waiting)]
    while replicas.disk.timer.next_deadline_ms() == replicas.disk.clock.monotonic_ms():
        replicas.advance(0)
        woken.append(answered(waiting))
    assert woken == [AT_ONCE, AT_ONCE + IN_A_SLICE, AT_ONCE + 2 * IN_A_SLICE, CONSUMERS]
    assert replicas.manager.fetch_purgatory.num_delayed == 0


def test_the_producer_is_answered_before_anybody_is_woken(replicas: Replicas) -> None:
    order: list[str] = []
    replicas.manager.reads.read_again = lambda *_: order.append("woken") or []  # type: ignore[method-assign,func-returns-value]
    replicas.fetch(0, max_wait_ms=500)

    class Answers(list[LogAppendResult]):
        def append(self, answer: object) -> None:
            order.append("answered")

    replicas.append(batch(b"a"), answers=Answers())
    assert order == ["answered", "woken"]


def test_followers_come_first(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1])
    consumers = [replicas.fetch(0, max_wait_ms=10_000) for _ in range(CONSUMERS)]
    follower = replicas.fetch(0, max_wait_ms=10_000, replica_id=1)
    replicas.append(batch(b"a"))
    assert (answered([follower]), answered(consumers)) == (1, 0)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each look at a waiting fetch, whether it is a follower's."""
    looked_at: list[bool] = []
    look = DelayedFetch.try_complete_for

    def noted(operation: DelayedFetch, key: Hashable) -> bool:
        looked_at.append(operation.is_from_follower)
        return look(operation, key)

    monkeypatch.setattr(DelayedFetch, "try_complete_for", noted)
    return looked_at


def test_an_append_that_commits_nothing_looks_at_no_consumer(tmp_path: Path, looked_at: list[bool]) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1])
    consumers = [replicas.fetch(0, max_wait_ms=10_000) for _ in range(CONSUMERS)]
    follower = replicas.fetch(0, max_wait_ms=10_000, replica_id=1)
    replicas.append(batch(b"a"))
    assert (looked_at, answered([follower])) == ([True], 1)
    replicas.fetch(1, replica_id=1)
    while replicas.disk.timer.next_deadline_ms() == replicas.disk.clock.monotonic_ms():
        replicas.advance(0)
    assert answered(consumers) == CONSUMERS


def test_fetches_woken_in_vain_do_not_delay_the_others(replicas: Replicas) -> None:
    """Half of them wait for more data than there is, and are checked at every append."""
    greedy = [replicas.fetch(0, max_wait_ms=10_000, min_bytes=1 << 20) for _ in range(CONSUMERS)]
    modest = [replicas.fetch(0, max_wait_ms=10_000) for _ in range(CONSUMERS)]
    for _ in range(2 * CONSUMERS // IN_A_SLICE + 1):
        replicas.append(batch(b"a"))
        replicas.advance(0)
    assert (answered(greedy), answered(modest)) == (0, CONSUMERS)


def test_a_fetch_that_ends_before_its_turn_is_skipped(replicas: Replicas) -> None:
    waiting = [replicas.fetch(0, max_wait_ms=100) for _ in range(CONSUMERS)]
    replicas.append(batch(b"a"))
    replicas.disk.clock.advance(101)
    replicas.disk.timer.advance()
    replicas.advance(0)
    assert answered(waiting) == CONSUMERS
    assert all(len(answers) == 1 for answers in waiting)


def test_a_commit_looks_at_no_follower(tmp_path: Path, looked_at: list[bool]) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1, 2])
    replicas.append(batch(b"a"))
    consumer = replicas.fetch(0, max_wait_ms=500)
    followers = [replicas.fetch(1, max_wait_ms=500, replica_id=broker_id) for broker_id in (1, 2)]
    assert (looked_at, answered([consumer]), answered(followers)) == ([False], 1, 0)
