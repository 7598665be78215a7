"""The fetch sessions of a broker, and their eviction.

There are at most `max_sessions`. A new session evicts

1. the least recently used session, if it was not used for longer than `MIN_EVICTION_MS`;
2. else the session of least worth, unless the new one is worth less. A follower's session is worth more than a
   consumer's; then more partitions are worth more than fewer. Sessions younger than `MIN_EVICTION_MS` stay, except that
   followers evict consumers of any age.

All sessions together have at most `max_partitions`. A session that is new, or that grows, evicts others until its
partitions fit: first those that were not used for longer than `MIN_EVICTION_MS`, then, for a follower, those of
consumers, the smallest first. It evicts none if that is not enough.

The cost does not depend on the number of sessions: a dict keeps the order of use, and a sorted list the order of worth
(a thousand keys are searched in ten steps, and moved in less than a microsecond). Only while there is no room for more
partitions, each session may be looked at.

Kafka divides the sessions among eight shards, each with an eighth of the slots and a lock of its own.

Kafka: FetchSessionCacheShard, FetchSessionCacheShard.touch, EvictableKey, LastUsedKey.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from typing import Final

from odradek.broker.fetch.fetch_session import NOT_CACHED, Answers, FetchSession, ReleasePartitions, release_at_once

INVALID_SESSION_ID: Final = 0
MAX_SESSION_ID: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000

MAX_CACHED_PARTITIONS: Final = 500_000
"""Partitions that all sessions together may hold (about 500 bytes each). Kafka limits only the number of sessions; a
session grows with every partition that a client names, existing or not."""

Worth = tuple[bool, int, int]


class _Evictable:
    """Sessions in the order of their worth."""

    __slots__ = ("_worths",)

    def __init__(self) -> None:
        self._worths: list[Worth] = []

    def add(self, worth: Worth) -> None:
        insort(self._worths, worth)

    def discard(self, worth: Worth) -> None:
        index = bisect_left(self._worths, worth)
        if index < len(self._worths) and self._worths[index] == worth:
            del self._worths[index]

    def least(self) -> Worth | None:
        return self._worths[0] if self._worths else None

    def consumers(self) -> Iterator[int]:
        """The ids of sessions of consumers, the smallest first."""
        for privileged, _, session_id in self._worths:
            if privileged:
                return
            yield session_id


class FetchSessionCache:
    """`random_id` draws a number between two others, both included. `release` is for partitions of closed sessions."""

    def __init__(
        self,
        max_sessions: int,
        random_id: Callable[[int, int], int],
        *,
        max_partitions: int = MAX_CACHED_PARTITIONS,
        release: ReleasePartitions = release_at_once,
    ) -> None:
        self._max_sessions = max_sessions
        self.max_partitions = max_partitions
        self._random_id = random_id
        self._release = release
        self._sessions: dict[int, FetchSession] = {}  # in order of last use
        self.get: Callable[[int], FetchSession | None] = self._sessions.get
        """The session of an id; None if the cache has it no longer. The method of the dict, without a call in between.
        """
        self._evictable_by_all = _Evictable()
        self._evictable_by_followers = _Evictable()
        self.total_partitions = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def evict_for(self, grown: FetchSession, now_ms: int) -> bool:
        """Evict others until the partitions of a session that was just used (`touch`) fit; False when they cannot."""
        victims: dict[int, FetchSession] = {}
        if not self._add_victims(victims, grown.privileged, 0, now_ms):
            return False
        self._evict(victims)
        return True

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._rank_no_longer(session)
            session.close()

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """The session is used now; update its size and rank."""
        was_old_enough = session.last_used_ms - session.created_ms > MIN_EVICTION_MS
        is_old_enough = now_ms - session.created_ms > MIN_EVICTION_MS
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        if session.cached_size == len(session.partitions) and was_old_enough == is_old_enough:
            return  # its worth has not changed
        self._rank_no_longer(session)
        session.cached_size = len(session.partitions)
        self.total_partitions += session.cached_size
        if is_old_enough or not session.privileged:
            self._evictable_by_followers.add(_worth(session))
        if is_old_enough:
            self._evictable_by_all.add(_worth(session))

    def maybe_create(
        self,
        answers: Answers,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        asked_by: Hashable = None,
    ) -> Generator[None, None, FetchSession | None]:
        """A new session with `answers` as its last answers, one partition a step; None when there is no room.

        The last step adds it to the cache.
        """
        size = len(answers)
        if self._victims(privileged, size, now_ms) is None:
            return None
        session = FetchSession(
            INVALID_SESSION_ID,
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
            asked_by=asked_by,
            release=self._release,
        )
        for fetch, data in answers:
            fetch.sent_high_watermark = data.high_watermark
            fetch.sent_log_start_offset = data.log_start_offset
            session.add(fetch)
            yield
        victims = self._victims(privileged, size, now_ms)
        if victims is None:  # another session has taken the place
            session.close()
            return None
        self._evict(victims)
        while session.session_id == INVALID_SESSION_ID or session.session_id in self._sessions:
            session.session_id = self._random_id(1, MAX_SESSION_ID)
        self._sessions[session.session_id] = session
        self.touch(session, now_ms)
        return session

    def _evict(self, victims: Iterable[int]) -> None:
        for session_id in victims:
            self.remove(session_id)
            self.evictions += 1

    def _victims(self, privileged: bool, size: int, now_ms: int) -> dict[int, FetchSession] | None:
        """The sessions that a new one of `size` partitions evicts; None when there is no room for it."""
        victims: dict[int, FetchSession] = {}
        if len(self._sessions) >= self._max_sessions:
            victim = self._victim(privileged, size, now_ms)
            if victim is None:
                return None
            victims[victim] = self._sessions[victim]
        return victims if self._add_victims(victims, privileged, size, now_ms) else None

    def _add_victims(self, victims: dict[int, FetchSession], privileged: bool, size: int, now_ms: int) -> bool:
        """Add sessions to `victims` until `size` more partitions fit; False when they cannot."""
        freed = sum(session.cached_size for session in victims.values())
        lacking = self.total_partitions + size - freed - self.max_partitions
        if lacking <= 0:
            return True
        for session_id in self._expendable(privileged, now_ms):
            if session_id not in victims:
                victims[session_id] = session = self._sessions[session_id]
                lacking -= session.cached_size
                if lacking <= 0:
                    return True
        return False

    def _expendable(self, privileged: bool, now_ms: int) -> Iterator[int]:
        """The sessions that may be evicted for partitions of another, the first to go first; some of them twice."""
        for session in self._sessions.values():
            if now_ms - session.last_used_ms <= MIN_EVICTION_MS:
                break
            yield session.session_id
        if privileged:
            yield from self._evictable_by_followers.consumers()

    def _victim(self, privileged: bool, size: int, now_ms: int) -> int | None:
        """The session that a new one of `size` partitions may evict."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return None
        if now_ms - oldest.last_used_ms > MIN_EVICTION_MS:
            return oldest.session_id
        least = (self._evictable_by_followers if privileged else self._evictable_by_all).least()
        if least is None or (privileged, size, 0) < least:
            return None
        return least[2]

    def _rank_no_longer(self, session: FetchSession) -> None:
        if session.cached_size == NOT_CACHED:
            return
        worth = _worth(session)
        self._evictable_by_all.discard(worth)
        self._evictable_by_followers.discard(worth)
        self.total_partitions -= session.cached_size


def _worth(session: FetchSession) -> Worth:
    return (session.privileged, session.cached_size, session.session_id)
