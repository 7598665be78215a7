"""From the controller to the brokers: one queue per broker, one request at a time, retried until the broker is gone.

The port is `ControlChannel`. `ControllerChannels` implements it for any number of brokers over a `ControlTransport`
each: the broker's own handler for itself (`in_process_transport`), a connection for everybody else. Requests reach a
broker in the order in which they were sent; one that fails on the way is sent again every 100 ms, for as long as the
broker is registered, because what it says may not be lost. Each answer is handed to the callback of its request.

Answers to ControllerChannelManager and RequestSendThread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from odradek.controller.request_batch import ControlRequest, ControlResponse
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from odradek.controller.broker_info import Broker
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger("odradek.controller")

RETRY_BACKOFF_MS: Final = 100

OnResponse: TypeAlias = Callable[[ControlResponse], None]


class ControlChannel(Protocol):
    """Delivers control requests to brokers, in order for each of them."""

    def add_broker(self, broker: Broker) -> None:
        """Begin to deliver to a broker."""

    def remove_broker(self, broker_id: int) -> None:
        """Stop delivering; what was not delivered is dropped."""

    def send(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        """Queue a request. Requests to brokers that were not added are dropped."""

    def shutdown(self) -> None:
        """Remove every broker."""


class ControlTransport(Protocol):
    """The way to one broker."""

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        """Deliver a request and wait for its answer; OSError when that failed and should be tried again."""

    def close(self) -> None: ...


ControlHandler: TypeAlias = Callable[[ControlRequest], Awaitable[ControlResponse]]


class InProcessTransport:
    """The way to the broker in this process: its handler, given the same objects that would cross the wire.

    A handler that fails is answered for as a broker's request loop answers: with the error, for every partition.
    """

    def __init__(self, handler: ControlHandler) -> None:
        self._handler = handler

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        try:
            return await self._handler(request)
        except KafkaError as error:
            return error_response(request, error.code)
        except Exception as error:
            logger.error("Error handling %s", request, exc_info=error)
            return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)

    def close(self) -> None:
        """Nothing to close."""


def error_response(request: ControlRequest, code: ErrorCode) -> ControlResponse:
    """The answer to a request that failed as a whole."""
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(error_code=code)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error_code=code)
        case StopReplicaRequest():
            # Named one by one, for a topic's deletion waits for each of them.
            errors = [
                StopReplicaPartitionError(
                    topic_name=topic.topic_name, partition_index=partition.partition_index, error_code=code
                )
                for topic in request.topic_states
                for partition in topic.partition_states
            ]
            return StopReplicaResponse(error_code=code, partition_errors=errors)


class _BrokerQueue:
    """The requests to one broker and the task that delivers them."""

    def __init__(self, broker: Broker, transport: ControlTransport, timer: SystemTimer) -> None:
        self._broker = broker
        self._transport = transport
        self._timer = timer
        self._requests: deque[tuple[ControlRequest, OnResponse]] = deque()
        self._arrived = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._deliver(), name=f"control-channel-{broker.id}")

    def put(self, request: ControlRequest, callback: OnResponse) -> None:
        self._requests.append((request, callback))
        self._arrived.set()

    def close(self) -> None:
        self._task.cancel()
        self._transport.close()

    async def _deliver(self) -> None:
        while True:
            while not self._requests:
                self._arrived.clear()
                await self._arrived.wait()
            request, callback = self._requests[0]
            try:
                response = await self._transport.exchange(request)
            except OSError as error:
                logger.warning("Controller failed to send %s to broker %d: %s", request, self._broker.id, error)
                await self._back_off()
                continue
            self._requests.popleft()
            callback(response)

    async def _back_off(self) -> None:
        elapsed = asyncio.Event()
        task = self._timer.schedule(RETRY_BACKOFF_MS, elapsed.set)
        try:
            await elapsed.wait()
        finally:
            task.cancel()


class ControllerChannels:
    """The queues of all brokers; `connect` makes the way to a broker."""

    def __init__(self, connect: Callable[[Broker], ControlTransport], timer: SystemTimer) -> None:
        self._connect = connect
        self._timer = timer
        self._queues: dict[int, _BrokerQueue] = {}

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
