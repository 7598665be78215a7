"""Requests that wait until this broker has been told of the cluster it has just joined.

Until its first UpdateMetadata the cache of a member knows no broker, no controller and no topic. A client that is
answered from it takes the cluster for empty: librdkafka's admin client waits for a controller for as long as its
request may take, and a producer forgets its topic. So what clients alone ask, and what is answered from the cache, is
held until then, `FIRST_METADATA_WAIT_MS` at most; after that the answer is what is known. What brokers ask of each
other is never held: the controller tells nobody who does not answer it.

Apache Kafka has no such wait, and a window of the same kind, which its slower start makes less likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

FIRST_METADATA_WAIT_MS: Final = 5_000
"""After this time a request is answered from what is known."""

ANSWERED_FROM_THE_CACHE: Final = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DELETE_RECORDS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.ELECT_LEADERS,
    }
)
"""What no broker asks of another. Fetch, ListOffsets and the epochs of leaders are asked by followers too; consumers
ask for metadata, and so wait here, when they are told that a partition is unknown."""


class FirstMetadata:
    """Who waits for the first UpdateMetadata; `is_awaited` is False from then on, or where there is no cluster."""

    __slots__ = ("_call_soon", "_timer", "_waiting", "is_awaited")

    def __init__(
        self, timer: SystemTimer, call_soon: Callable[[Callable[[], None]], object], *, is_awaited: bool
    ) -> None:
        self.is_awaited = is_awaited
        self._timer = timer
        self._call_soon = call_soon
        self._waiting: dict[Callable[[], None], TimerTask] = {}
        """What goes on with each request, with its time limit; the oldest first."""

    def hold(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the broker has been told, or time is up."""

        def expire() -> None:
            del self._waiting[go_on]
            go_on()

        self._waiting[go_on] = self._timer.schedule(FIRST_METADATA_WAIT_MS, expire)

    def arrived(self) -> None:
        """The broker has been told."""
        if self.is_awaited:
            self.is_awaited = False
            self._go_on()

    def close(self) -> None:
        """The broker stops: nobody waits any longer, nor is anybody answered."""
        for expiration in self._waiting.values():
            expiration.cancel()
        self._waiting.clear()

    def _go_on(self) -> None:
        """One request in each turn of the loop: thousands of clients may have come back at once."""
        if not self._waiting:
            return
        go_on = next(iter(self._waiting))
        self._waiting.pop(go_on).cancel()
        self._call_soon(self._go_on)
        go_on()
