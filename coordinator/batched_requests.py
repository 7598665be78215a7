"""Sends at most one request at a time to each destination; what is queued meanwhile goes with the next request.

The owner keeps the queue of each destination, since each owner has an order and a bound of its own. This class
guarantees that one destination never has two requests in flight, that the next request is sent as soon as the response
to one has been handled, and that an error in a batch (a request that cannot be made, a response that cannot be read)
ends the batch too. An in-flight mark that stayed behind would block its destination for good.

Kafka: InterBrokerSendThread, DefaultAlterPartitionManager.inflightRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from typing import Final, Generic, Protocol, TypeVar

DestinationT = TypeVar("DestinationT", bound=Hashable)
TargetT = TypeVar("TargetT", bound=Hashable, contravariant=True)
BatchT = TypeVar("BatchT")
ResponseT = TypeVar("ResponseT")


_BEING_HANDLED: Final = object()
"""In place of the token of a batch whose response is being handled."""


class BatchOwner(Protocol[TargetT, BatchT, ResponseT]):
    """Keeps the queues, makes the requests and handles the responses."""

    def take_batch(self, destination: TargetT, /) -> BatchT | None:
        """Take everything that is queued for the destination out of the queue; None if nothing is."""
        ...

    def send_batch(self, destination: TargetT, batch: BatchT, respond: Callable[[ResponseT | None], None], /) -> None:
        """Send the batch; `respond` gets the response, or None if none will come."""
        ...

    def batch_answered(self, batch: BatchT, response: ResponseT | None, /) -> bool:
        """Handle the response. Returns True if the next batch may go at once; else the owner calls `send` later."""
        ...


class BatchedRequests(Generic[DestinationT, BatchT, ResponseT]):
    """At most one batch in flight to each destination."""

    __slots__ = ("_owner", "_under_way")

    def __init__(self, owner: BatchOwner[DestinationT, BatchT, ResponseT]) -> None:
        self._owner = owner
        # Each batch has its own token, so that a second response to one batch does not end a later batch.
        self._under_way: dict[DestinationT, object] = {}

    def send(self, destination: DestinationT) -> None:
        """Send what is queued for the destination, now or when the batch in flight to it has ended."""
        if destination in self._under_way:
            return
        batch = self._owner.take_batch(destination)
        if batch is None:
            return
        token = self._under_way[destination] = object()

        def respond(response: ResponseT | None) -> None:
            if self._under_way.get(destination) is not token:
                return
            # Handling the response may queue more. That goes when all of the batch is settled: until then the owner's
            # queue may still have parts of it.
            self._under_way[destination] = _BEING_HANDLED
            go_on = True
            try:
                go_on = self._owner.batch_answered(batch, response)
            finally:
                del self._under_way[destination]
                if go_on:
                    self.send(destination)

        is_sent = False
        try:
            self._owner.send_batch(destination, batch, respond)
            is_sent = True
        finally:
            if not is_sent:
                respond(None)


def call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Call all of them in order, also those after one that raises; the exception is raised at the end."""
    with ExitStack() as stack:
        for callback in reversed(list(callbacks)):
            stack.callback(callback)
