"""Requests that wait until the controller has told this broker of the cluster.

After a start the metadata cache knows no broker, no controller and no topic. A client that is answered from it takes
the cluster for empty: librdkafka's admin client waits for a controller for as long as its request may take, a producer
forgets its topic, and a topic that exists is created once more. So what clients alone ask, and what is answered from
the cache, is held, `FIRST_METADATA_WAIT_MS` at most; after that the answer is what is known. What brokers ask of each
other is never held: the controller tells nobody who does not answer it.

Which UpdateMetadata ends the wait:

    no topic when the broker started    the first
    topics, and a controller in office  the first, which names all partitions (onBrokerStartup)
    topics, and a new controller        the second: the first names the brokers only, then comes LeaderAndIsr

One that names no partition although there were topics ends the wait later, after `FIRST_METADATA_WAIT_MS`: the topics
may have been deleted meanwhile. On one node the controller is always a new one.

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
    """Who waits to be told; `is_awaited` is False when the broker has been. `has_topics`: when it was started."""

    __slots__ = ("_call_soon", "_end_of_wait", "_has_topics", "_timer", "_waiting", "is_awaited")

    def __init__(
        self, timer: SystemTimer, call_soon: Callable[[Callable[[], None]], object], *, has_topics: bool
    ) -> None:
        self.is_awaited = True
        self._has_topics = has_topics
        self._end_of_wait: TimerTask | None = None
        """There once an UpdateMetadata without partitions has come that is not yet all."""
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

    def arrived(self, *, names_partitions: bool) -> None:
        """An UpdateMetadata has been applied."""
        if not self.is_awaited:
            return
        if names_partitions or not self._has_topics:
            self._end()
        elif self._end_of_wait is None:
            self._end_of_wait = self._timer.schedule(FIRST_METADATA_WAIT_MS, self._end)

    def close(self) -> None:
        """The broker stops: nobody waits any longer, nor is anybody answered."""
        if self._end_of_wait is not None:
            self._end_of_wait.cancel()
        for expiration in self._waiting.values():
            expiration.cancel()
        self._waiting.clear()

    def _end(self) -> None:
        if self._end_of_wait is not None:
            self._end_of_wait.cancel()
        self.is_awaited = False
        self._go_on()

    def _go_on(self) -> None:
        """One request in each turn of the loop: thousands of clients may have come back at once."""
        if not self._waiting:
            return
        go_on = next(iter(self._waiting))
        self._waiting.pop(go_on).cancel()
        self._call_soon(self._go_on)
        go_on()
