"""Shortens the waits of followers' fetches after this broker has become the leader of partitions.

A follower names a new partition only in its next fetch, and the one before waits for up to half a second
(`replica.fetch.wait.max.ms`). Until then the new leader commits no record. So a new leadership answers the waiting
fetches of followers, and for `SHORT_FOR_MS` their fetches wait for `SHORT_WAIT_MS` at most: a follower may get its
LeaderAndIsr later.

Apache Kafka's followers wait. A response before `max_wait_ms` is over is always allowed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from odradek.broker.fetch.delayed_fetch import FOLLOWERS

if TYPE_CHECKING:
    from odradek.broker.fetch.delayed_fetch import DelayedFetch
    from odradek.broker.fetch.results import FetchParams
    from odradek.timer.clock import Clock
    from odradek.timer.purgatory import DelayedOperationPurgatory

SHORT_WAIT_MS: Final = 20
SHORT_FOR_MS: Final = 1_000
"""Fifty fetches without records, which take a broker about 20 ms of processor time together."""


class FollowerWaits:
    """The waits of followers' fetches on one broker."""

    def __init__(self, purgatory: DelayedOperationPurgatory[DelayedFetch], clock: Clock) -> None:
        self._purgatory = purgatory
        self._clock = clock
        self.short_until_ms = 0
        """Until this time of the monotonic clock waits are short."""

    def leadership_began(self) -> None:
        """This broker has become the leader of partitions that it did not lead before."""
        now_ms = self._clock.monotonic_ms()
        are_short = now_ms < self.short_until_ms
        self.short_until_ms = now_ms + SHORT_FOR_MS
        if not are_short:
            self._purgatory.check_and_complete(FOLLOWERS)

    def limited(self, params: FetchParams) -> FetchParams:
        """The parameters of a follower's fetch with a short wait."""
        if params.max_wait_ms > SHORT_WAIT_MS:
            return replace(params, max_wait_ms=SHORT_WAIT_MS)
        return params
