"""Sends the controller's requests to the brokers: one queue per broker, one request at a time.

The port is `ControlChannel`. `ControllerChannels` implements it with one `ControlTransport` per broker. Requests reach
a broker in the order of `send`. A request that fails is sent again every 100 ms while the broker is registered, because
no state change may be lost. The callback of a request gets its response.

Kafka: ControllerChannelManager, RequestSendThread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from odradek.controller.states.request_batch import ControlRequest, ControlResponse
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import Broker
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger("odradek.controller")

RETRY_BACKOFF_MS: Final = 100

OnResponse: TypeAlias = Callable[[ControlResponse], None]


class ControlChannel(Protocol):
    """Delivers control requests to brokers, in order for each of them."""

    def add_broker(self, broker: Broker) -> None:
        """Begin to send to a broker."""

    def remove_broker(self, broker_id: int) -> None:
        """Stop sending; queued requests are dropped."""

    def send(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        """Queue a request. Requests to brokers that were not added are dropped."""

    def shutdown(self) -> None:
        """Remove every broker."""

    @property
    def queue_sizes(self) -> Mapping[int, int]:
        """Broker id -> the requests that wait for it, for metrics."""

    @property
    def queue_times_ms(self) -> Mapping[int, Histogram]:
        """Broker id -> how long requests waited until they were sent, for metrics."""


class ControlTransport(Protocol):
    """The connection to one broker."""

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        """Send a request and wait for its response. Raises OSError if it must be sent again."""

    def close(self) -> None: ...


class _BrokerQueue:
    """The requests to one broker and the task that sends them. Kafka: RequestSendThread."""

    def __init__(self, broker: Broker, transport: ControlTransport, timer: SystemTimer) -> None:
        self._broker = broker
        self._transport = transport
        self._timer = timer
        self._requests: deque[tuple[ControlRequest, OnResponse, float]] = deque()
        """With the time when each was queued, by the clock of the loop."""
        self.queue_time_ms = Histogram()
        self._arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._deliver(), name=f"control-channel-{broker.id}")

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, request: ControlRequest, callback: OnResponse) -> None:
        self._requests.append((request, callback, self._loop.time()))
        self._arrived.set()

    def close(self) -> None:
        self._task.cancel()
        self._transport.close()

    async def _deliver(self) -> None:
        failed: ControlRequest | None = None
        while True:
            while not self._requests:
                self._arrived.clear()
                await self._arrived.wait()
            request, callback, queued_s = self._requests[0]
            if request is not failed:
                self.queue_time_ms.update(round((self._loop.time() - queued_s) * 1000))
            try:
                callback(await self._transport.exchange(request))
            except OSError as error:
                name = type(request).__name__
                level = logging.DEBUG if request is failed else logging.WARNING  # one warning for each request
                logger.log(level, "Controller failed to send %s to broker %d: %s", name, self._broker.id, error)
                failed = request
                await self._back_off()
                continue
            except Exception as error:
                logger.error("Error sending %r to broker %d", request, self._broker.id, exc_info=error)
            self._requests.popleft()

    async def _back_off(self) -> None:
        elapsed = asyncio.Event()
        task = self._timer.schedule(RETRY_BACKOFF_MS, elapsed.set)
        try:
            await elapsed.wait()
        finally:
            task.cancel()


class ControllerChannels:
    """The queues of all brokers; `connect` creates the transport to a broker."""

    def __init__(self, connect: Callable[[Broker], ControlTransport], timer: SystemTimer) -> None:
        self._connect = connect
        self._timer = timer
        self._queues: dict[int, _BrokerQueue] = {}

    @property
    def queue_sizes(self) -> Mapping[int, int]:
        """Broker id -> the requests that wait for it, the one under way among them."""
        return {broker_id: len(queue) for broker_id, queue in self._queues.items()}

    @property
    def queue_times_ms(self) -> Mapping[int, Histogram]:
        """Broker id -> how long requests waited until they were sent for the first time."""
        return {broker_id: queue.queue_time_ms for broker_id, queue in self._queues.items()}

    def add_broker(self, broker: Broker) -> None:
        if broker.id not in self._queues:
            self._queues[broker.id] = _BrokerQueue(broker, self._connect(broker), self._timer)

    def remove_broker(self, broker_id: int) -> None:
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.close()

    def send(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        queue = self._queues.get(broker_id)
        if queue is None:
            logger.warning("Not sending %s to broker %d, since it is offline", type(request).__name__, broker_id)
        else:
            queue.put(request, callback)

    def shutdown(self) -> None:
        for broker_id in list(self._queues):
            self.remove_broker(broker_id)
