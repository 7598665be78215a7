"""Eviction when there are too many fetch sessions."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetch.fetch_session import Answers, FetchSession, PartitionFetch
from odradek.broker.fetch.fetch_session_cache import MIN_EVICTION_MS, FetchSessionCache
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchTopic
from odradek.timer.sliced_work import run_through
from tests.support.in_process.fetch_sessions import Broker, request, told


def test_full_cache_gives_no_session_until_one_is_old_enough() -> None:
    broker = Broker(max_sessions=1)
    first = broker.fetch(request(0)).session_id
    assert broker.fetch(request(0, 1)).session_id == 0
    broker.now_ms = MIN_EVICTION_MS + 1
    second = broker.fetch(request(0)).session_id
    assert second not in (0, first)
    assert broker.cache.get(first) is None
    assert broker.cache.evictions == 1


def test_all_slots_are_one_cache() -> None:
    broker = Broker(max_sessions=7)
    sessions = [broker.fetch(request(0)).session_id for _ in range(8)]
    assert [session != 0 for session in sessions] == [True] * 7 + [False]


def test_session_in_use_makes_room_only_for_one_with_more_partitions() -> None:
    broker = Broker(max_sessions=1)
    first = broker.fetch(request(0, 1)).session_id
    broker.now_ms = MIN_EVICTION_MS + 1
    assert broker.fetch(request(session=first, epoch=1)).error_code == ErrorCode.NONE
    assert broker.fetch(request(0)).session_id == 0
    assert broker.fetch(request(0, 1, 2)).session_id != 0


def test_follower_takes_a_consumers_place() -> None:
    broker = Broker(max_sessions=1)
    broker.fetch(request(0, 1, 2))
    assert broker.fetch(request(0), is_follower=True).session_id != 0
    assert broker.fetch(request(0, 1, 2)).session_id == 0


def test_sessions_remember_a_bounded_number_of_partitions() -> None:
    broker = Broker()
    broker.cache = FetchSessionCache(10, lambda low, high: 77, max_partitions=3)
    assert broker.fetch(request(0, 1)).session_id == 77
    assert broker.fetch(request(0, 1)).session_id == 0, "no room: served without a session"
    assert broker.fetch(request(2, session=77, epoch=1)).error_code == ErrorCode.NONE
    refused = broker.fetch(request(3, session=77, epoch=2))
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.cache.total_partitions == 0


def full_of_partitions(*sizes: int, is_follower: bool = False) -> tuple[Broker, list[int]]:
    """A broker whose sessions may have no more partitions than these together, and the sessions."""
    broker = Broker()
    ids = itertools.count(1)
    broker.cache = FetchSessionCache(10, lambda low, high: next(ids), max_partitions=sum(sizes))
    made = [broker.fetch(request(*range(size)), is_follower=is_follower).session_id for size in sizes]
    return broker, made


def test_sessions_without_use_make_room_for_partitions_of_a_new_one() -> None:
    broker, (oldest, older, used) = full_of_partitions(2, 2, 1)
    broker.now_ms = MIN_EVICTION_MS
    assert broker.fetch(request(0)).session_id == 0, "none is old enough"
    broker.fetch(request(session=used, epoch=1))
    broker.now_ms = MIN_EVICTION_MS + 1
    assert broker.fetch(request(*range(5))).session_id == 0
    assert broker.cache.evictions == 0, "all that may go would not be enough"
    assert broker.fetch(request(0, 1)).session_id != 0
    assert (broker.cache.get(oldest), broker.cache.get(older) is None) == (None, False)
    assert broker.fetch(request(0, 1)).session_id != 0
    assert broker.cache.get(older) is None
    assert (broker.cache.evictions, broker.cache.total_partitions) == (2, 5)


def test_sessions_without_use_make_room_for_one_that_grows() -> None:
    broker, (unused, grows) = full_of_partitions(1, 1)
    broker.now_ms = MIN_EVICTION_MS + 1
    assert broker.fetch(request(1, session=grows, epoch=1)).error_code == ErrorCode.NONE
    assert broker.cache.get(unused) is None
    assert broker.fetch(request(2, session=grows, epoch=2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_smallest_consumers_make_room_for_partitions_of_a_follower() -> None:
    broker, (large, small, middle) = full_of_partitions(4, 1, 2)
    follower = broker.fetch(request(0), is_follower=True).session_id
    assert follower != 0
    assert broker.cache.get(small) is None
    assert broker.fetch(request(1, 2, session=follower, epoch=1), is_follower=True).error_code == ErrorCode.NONE
    assert broker.cache.get(middle) is None
    assert broker.cache.get(large) is not None
    assert broker.fetch(request(0)).session_id == 0


def test_followers_in_use_keep_their_partitions() -> None:
    broker, (first, second) = full_of_partitions(1, 1, is_follower=True)
    broker.now_ms = MIN_EVICTION_MS + 1
    for session in (first, second):
        broker.fetch(request(session=session, epoch=1), is_follower=True)
    assert broker.fetch(request(0, 1), is_follower=True).session_id == 0
    assert broker.cache.evictions == 0


class Apache:
    """FetchSessionCacheShard with lists only: each decision checks all sessions."""

    def __init__(self, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self.sessions: dict[int, tuple[bool, int, int, int]] = {}
        self.by_all: set[int] = set()
        self.by_followers: set[int] = set()
        """privileged, size, created, last used, by id."""

    def touch(self, session_id: int, privileged: bool, size: int, created_ms: int, now_ms: int) -> None:
        self.sessions.pop(session_id, None)
        self.sessions[session_id] = (privileged, size, created_ms, now_ms)
        self.by_all.discard(session_id)
        self.by_followers.discard(session_id)
        if not privileged or now_ms - created_ms > MIN_EVICTION_MS:
            self.by_followers.add(session_id)
        if now_ms - created_ms > MIN_EVICTION_MS:
            self.by_all.add(session_id)

    def remove(self, session_id: int) -> None:
        self.sessions.pop(session_id, None)
        self.by_all.discard(session_id)
        self.by_followers.discard(session_id)

    def makes_room(self, privileged: bool, size: int, now_ms: int) -> bool:
        if len(self.sessions) < self.max_sessions:
            return True
        oldest, (_, _, _, used_ms) = next(iter(self.sessions.items()))
        if now_ms - used_ms > MIN_EVICTION_MS:
            self.remove(oldest)
            return True
        candidates = self.by_followers if privileged else self.by_all
        least = min(((*self.sessions[each][:2], each) for each in candidates), default=None)
        if least is None or (privileged, size, 0) < least:
            return False
        self.remove(least[2])
        return True


steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "touch", "remove"]),
        st.booleans(),
        st.integers(0, 4),
        st.sampled_from([0, 1, 60_000, 119_999, 120_000, 120_001]),
        st.integers(0, 50),
    ),
    max_size=60,
)


@given(steps=steps)
def test_the_same_are_evicted_as_by_apache(steps: list[tuple[str, bool, int, int, int]]) -> None:
    ids = itertools.count(1)
    cache, model = FetchSessionCache(3, lambda low, high: next(ids)), Apache(3)
    names = itertools.count()
    now_ms = 0
    for what, privileged, size, later_ms, choice in steps:
        now_ms += later_ms
        chosen = sorted(model.sessions)[choice % len(model.sessions)] if model.sessions else None
        session = None if chosen is None else cache.get(chosen)
        if what == "create":
            answers = [(PartitionFetch("t", ZERO_UUID, next(names)), told(0)) for _ in range(size)]
            created = make(cache, answers, privileged=privileged, now_ms=now_ms)
            assert (created is not None) is model.makes_room(privileged, size, now_ms)
            if created is not None:
                model.touch(created.session_id, privileged, size, now_ms, now_ms)
        elif session is not None and what == "touch":
            named = FetchTopic(topic="t", partitions=[FetchPartition(partition=next(names)) for _ in range(size)])
            run_through(session.update([named], (), None, {}.get))
            cache.touch(session, now_ms)
            _touch(model, session, now_ms)
        elif chosen is not None:
            cache.remove(chosen)
            model.remove(chosen)
        assert list(cache._sessions) == list(model.sessions)
        assert cache.total_partitions == sum(size for _, size, _, _ in model.sessions.values())


def _touch(model: Apache, session: FetchSession, now_ms: int) -> None:
    model.touch(session.session_id, session.privileged, len(session.partitions), session.created_ms, now_ms)


class CountedSession(FetchSession):
    """Records which sessions are checked."""

    __slots__ = ()
    looked_at: ClassVar[set[int]] = set()

    def __getattribute__(self, name: str) -> Any:
        CountedSession.looked_at.add(id(self))
        return super().__getattribute__(name)


def make(cache: FetchSessionCache, answers: Answers, *, privileged: bool, now_ms: int) -> FetchSession | None:
    return run_through(cache.maybe_create(answers, privileged=privileged, uses_topic_ids=False, now_ms=now_ms))


def test_a_fetch_that_finds_no_room_looks_at_one_session() -> None:
    ids = itertools.count(1)
    cache = FetchSessionCache(1_000, lambda low, high: next(ids))
    for name in range(1_000):
        answers = [(PartitionFetch("t", ZERO_UUID, name), told(0)), (PartitionFetch("u", ZERO_UUID, name), told(0))]
        created = make(cache, answers, privileged=False, now_ms=0)
        assert created is not None
        created.__class__ = CountedSession
    CountedSession.looked_at.clear()
    one_more = [(PartitionFetch("t", ZERO_UUID, 0), told(0))]
    assert make(cache, one_more, privileged=False, now_ms=1) is None
    assert len(CountedSession.looked_at) <= 1
    assert make(cache, one_more, privileged=True, now_ms=1) is not None
    assert len(CountedSession.looked_at) <= 2


MANY = 100


def test_a_session_is_made_a_partition_a_step_and_is_there_with_the_last_one() -> None:
    broker = Broker()
    context = broker.open(request(*range(MANY)))
    making = context.respond([(fetch, told(fetch.partition)) for fetch in context.partitions], 0)
    for made in range(1, MANY + 1):
        next(making)
        assert len(broker.cache) == 0
        assert sum(fetch.session is not None for fetch in context.partitions) == made
    next(making)
    assert broker.cache.total_partitions == MANY


def test_a_session_whose_place_is_taken_while_it_is_made_is_none() -> None:
    broker = Broker(max_sessions=1)
    context = broker.open(request(0))
    making = context.respond([(fetch, told(fetch.partition)) for fetch in context.partitions], 0)
    next(making)
    other = broker.fetch(request(1)).session_id
    assert run_through(making).session_id == 0
    assert broker.cache.get(other) is not None
    assert [fetch.session for fetch in context.partitions] == [None]


def test_closing_a_session_does_not_release_each_partition_itself() -> None:
    release: list[Collection[PartitionFetch]] = []
    broker = Broker()
    broker.cache = FetchSessionCache(10, lambda low, high: 77, release=release.append)
    context = broker.open(request(*range(MANY)))
    run_through(context.respond([(fetch, told(fetch.partition)) for fetch in context.partitions], 0))
    broker.cache.remove(77)
    assert [list(fetches) for fetches in release] == [context.partitions]
    assert all(fetch.session is not None for fetch in context.partitions), "`release` does it"
