"""The time-outs of sessions. Deadlines are rounded up to whole ticks, so a session may live up to one tick longer.

ZooKeeper: SessionTrackerImpl, ExpiryQueue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.controller.tree.service_store import StoredSession
    from odradek.timer.clock import Clock


@dataclass(slots=True)
class TrackedSession:
    """A session that has not ended."""

    session_id: int
    timeout_ms: int
    password: bytes
    expires_ms: int
    """In monotonic time."""


class SessionTracker:
    """The sessions that live, with the moment at which each ends if nothing is heard from its client."""

    def __init__(self, clock: Clock, tick_time_ms: int) -> None:
        self._clock = clock
        self._tick_time_ms = tick_time_ms
        self._sessions: dict[int, TrackedSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def track(self, stored: StoredSession) -> None:
        session = TrackedSession(*stored, expires_ms=0)
        self._sessions[stored.session_id] = session
        self._extend(session, stored.timeout_ms)

    def find(self, session_id: int, password: bytes | None) -> TrackedSession | None:
        """The session, if it lives and the password is its own."""
        session = self._sessions.get(session_id)
        return session if session is not None and session.password == password else None

    def touch(self, session_id: int, timeout_ms: int) -> bool:
        """Something was heard from the client; False if the session has ended."""
        session = self._sessions.get(session_id)
        if session is None:
            return False
        self._extend(session, timeout_ms)
        return True

    def _extend(self, session: TrackedSession, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        session.expires_ms = (deadline_ms // self._tick_time_ms + 1) * self._tick_time_ms

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def take_expired(self) -> list[int]:
        """The sessions whose deadline has passed; they are no longer tracked."""
        now_ms = self._clock.monotonic_ms()
        expired = [session.session_id for session in self._sessions.values() if session.expires_ms <= now_ms]
        for session_id in expired:
            del self._sessions[session_id]
        return expired

    def by_deadline(self) -> dict[int, list[int]]:
        """The ids of the sessions, by the milliseconds until they end."""
        now_ms = self._clock.monotonic_ms()
        deadlines: dict[int, list[int]] = {}
        for session in sorted(self._sessions.values(), key=lambda tracked: tracked.expires_ms):
            deadlines.setdefault(session.expires_ms - now_ms, []).append(session.session_id)
        return deadlines
