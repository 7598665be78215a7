"""Holds client requests after a start until the controller has sent the cluster's metadata.

After a start the metadata cache has no broker, no controller and no topic. A client with an answer from it takes the
cluster for empty: librdkafka's admin client waits for a controller until its request times out, a producer forgets its
topic, and an existing topic is created again. So requests that only clients send, and that are answered from the cache,
are held for at most `FIRST_METADATA_WAIT_MS`. If no broker is known even then, the connection of a client that asks
for brokers is closed: the client connects and asks again. After an answer without brokers, librdkafka's admin client
would not ask again. Requests that brokers send are never held: the controller waits for their answers before it sends
the metadata.

Which UpdateMetadata ends the wait:

    no topic when the broker started    the first
    topics, and a controller in office  the first, which names all partitions (onBrokerStartup)
    topics, and a new controller        the second: the first names the brokers only, then comes LeaderAndIsr

If the first one names no partition although there were topics, the wait ends at the latest `FIRST_METADATA_WAIT_MS`
after it: the topics may have been deleted meanwhile. On one node the controller is always a new one.

Apache Kafka has no such wait, and does not close connections. Its clients can get the same wrong answers; its slower
start makes that less likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

FIRST_METADATA_WAIT_MS: Final = 5_000
"""After this time a request is answered from the cache as it is, or its connection is closed."""

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
"""Requests that only clients send. Followers, too, send Fetch, ListOffsets and OffsetForLeaderEpoch; a consumer that
gets an error for an unknown partition from them sends Metadata next, which is held."""


ASKS_FOR_BROKERS: Final = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER})
"""Requests whose answer without any broker misleads a client."""


class FirstMetadata:
    """The held requests. `is_awaited` is False after the metadata has arrived. `has_topics`: there were topics at the
    start.
    """

    __slots__ = ("_call_soon", "_end_of_wait", "_has_brokers", "_has_topics", "_timer", "_waiting", "is_awaited")

    def __init__(
        self, timer: SystemTimer, call_soon: Callable[[Callable[[], None]], object], *, has_topics: bool
    ) -> None:
        self.is_awaited = True
        self._has_brokers = False
        self._has_topics = has_topics
        self._end_of_wait: TimerTask | None = None
        """Set after an UpdateMetadata without partitions when more is expected."""
        self._timer = timer
        self._call_soon = call_soon
        self._waiting: dict[Callable[[], None], TimerTask] = {}
        """The function that continues each request, with its time-out; the oldest first."""

    def hold(self, go_on: Callable[[], None], without_brokers: Callable[[], None]) -> None:
        """Call `go_on` when the metadata has arrived, or after the time-out; if no broker is known then,
        `without_brokers`.
        """

        def expire() -> None:
            del self._waiting[go_on]
            if self._has_brokers:
                go_on()
            else:
                without_brokers()

        self._waiting[go_on] = self._timer.schedule(FIRST_METADATA_WAIT_MS, expire)

    def arrived(self, *, names_partitions: bool) -> None:
        """An UpdateMetadata has been applied."""
        if not self.is_awaited:
            return
        self._has_brokers = True
        if names_partitions or not self._has_topics:
            self._end()
        elif self._end_of_wait is None:
            self._end_of_wait = self._timer.schedule(FIRST_METADATA_WAIT_MS, self._end)

    def close(self) -> None:
        """The broker stops: drop the held requests without an answer."""
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
        """Continue one request in each turn of the event loop: there may be thousands."""
        if not self._waiting:
            return
        go_on = next(iter(self._waiting))
        self._waiting.pop(go_on).cancel()
        self._call_soon(self._go_on)
        go_on()
