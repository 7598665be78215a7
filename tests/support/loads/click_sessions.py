"""Sessions of clicks in plain Python, by the rules of Spark's session windows in append mode; and random clicks.

The rules, for batch n with the watermark w(n), all in milliseconds:

- A click at t is a window from t to t + gap. Windows of a user that overlap or touch become one session.
- A click is late, and dropped, if t + gap <= w(n-1): the watermark of the batch before decides.
- A session whose end <= w(n) is written and forgotten, after the clicks of the batch have been merged. A click that is
  not late by itself, but would have belonged to a session that is written already, begins another session.
- w(n+1) is the largest time seen up to batch n minus the delay, and never goes back. w(0) is 0. Late clicks count too.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Click(NamedTuple):
    """A click; its place decides between clicks of the same moment."""

    time_ms: int
    partition: int
    offset: int
    user: str
    page: str


class Session(NamedTuple):
    """A session that has ended."""

    session_id: str
    user: str
    first_ms: int
    last_ms: int
    clicks: int
    entry_page: str
    exit_page: str


@dataclass(slots=True)
class _Open:
    end_ms: int
    clicks: list[Click]


class SessionModel:
    """Takes batches of clicks, and gives the sessions that each of them ends."""

    def __init__(self, *, gap_ms: int, delay_ms: int) -> None:
        self.watermark_ms = 0
        """Of the next batch."""
        self.late = 0
        self._gap_ms = gap_ms
        self._delay_ms = delay_ms
        self._late_watermark_ms = 0
        self._open: dict[str, list[_Open]] = {}

    def batch(self, clicks: Sequence[Click]) -> list[Session]:
        """The sessions that this batch writes."""
        for click in clicks:
            if click.time_ms + self._gap_ms <= self._late_watermark_ms:
                self.late += 1
            else:
                self._merge(click)
        written = [session for user in self._open for session in self._ended(user)]
        self._late_watermark_ms = self.watermark_ms
        newest_ms = max((click.time_ms for click in clicks), default=0)
        self.watermark_ms = max(self.watermark_ms, newest_ms - self._delay_ms)
        return written

    def _merge(self, click: Click) -> None:
        sessions = [*self._open.get(click.user, []), _Open(click.time_ms + self._gap_ms, [click])]
        sessions.sort(key=lambda session: min(session.clicks))
        merged = sessions[:1]
        for session in sessions[1:]:
            if min(session.clicks).time_ms <= merged[-1].end_ms:
                merged[-1].end_ms = max(merged[-1].end_ms, session.end_ms)
                merged[-1].clicks += session.clicks
            else:
                merged.append(session)
        self._open[click.user] = merged

    def _ended(self, user: str) -> Iterator[Session]:
        ended = [session for session in self._open[user] if session.end_ms <= self.watermark_ms]
        self._open[user] = [session for session in self._open[user] if session.end_ms > self.watermark_ms]
        for session in ended:
            entry, exit_ = min(session.clicks), max(session.clicks)
            yield Session(
                session_id=session_id(user, entry.time_ms),
                user=user,
                first_ms=entry.time_ms,
                last_ms=exit_.time_ms,
                clicks=len(session.clicks),
                entry_page=entry.page,
                exit_page=exit_.page,
            )


def session_id(user: str, first_ms: int) -> str:
    return hashlib.sha256(f"{user}\0{first_ms * 1_000}".encode()).hexdigest()[:32]


def random_clicks(rng: random.Random, count: int, *, begin_ms: int, gap_ms: int) -> list[tuple[str, int, str]]:
    """Users, times and pages in the order of arrival: mostly in order, some late, some exactly a gap apart."""
    clicks: list[tuple[str, int, str]] = []
    now_ms = begin_ms
    for number in range(count):
        now_ms += rng.choice((0, 1_000, gap_ms // 8, gap_ms // 3))
        time_ms = now_ms
        if clicks and rng.random() < 0.1:
            time_ms = clicks[-1][1] + gap_ms
        elif rng.random() < 0.3:
            time_ms = now_ms - rng.randrange(12 * gap_ms)
        clicks.append((f"user {rng.randrange(6)}", time_ms, f"/{number}"))
    return clicks
