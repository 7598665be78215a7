"""Requests that are collected while another is under way: one at a time to each destination, the rest with the next.

What waits for a destination is kept by whoever owns this, since each owner has an order and a bound of its own. Here is
what all of them need: that never two are under way to one destination, that what has come meanwhile goes out as soon as
one has ended, and that whatever goes wrong with a batch (a request that cannot be made, an answer that cannot be
understood) ends it, too. A mark that stayed behind would silence a destination for good.

Kafka: InterBrokerSendThread of TransactionMarkerChannelManager and AddPartitionsToTxnManager, and the `inflightRequest`
of DefaultAlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from typing import Generic, Protocol, TypeVar

DestinationT = TypeVar("DestinationT", bound=Hashable)
TargetT = TypeVar("TargetT", bound=Hashable, contravariant=True)
BatchT = TypeVar("BatchT")
ResponseT = TypeVar("ResponseT")


class BatchOwner(Protocol[TargetT, BatchT, ResponseT]):
    """Who asks."""

    def take_batch(self, destination: TargetT, /) -> BatchT | None:
        """What is to go to the destination now; None if nothing."""
        ...

    def send_batch(self, destination: TargetT, batch: BatchT, respond: Callable[[ResponseT | None], None], /) -> None:
        """Send it; `respond` gets the response, or None if none will come."""
        ...

    def batch_answered(self, batch: BatchT, response: ResponseT | None, /) -> bool:
        """Take the answer in; whether the next batch may go at once. If not, the owner calls `send` later."""
        ...


class BatchedRequests(Generic[DestinationT, BatchT, ResponseT]):
    """At most one batch under way to each destination."""

    __slots__ = ("_owner", "_under_way")

    def __init__(self, owner: BatchOwner[DestinationT, BatchT, ResponseT]) -> None:
        self._owner = owner
        # Each batch has a token of its own, so that an answer that is given twice does not end a later one.
        self._under_way: dict[DestinationT, object] = {}

    def send(self, destination: DestinationT) -> None:
        """Send what waits for the destination, unless a batch is under way to it: then it follows."""
        if destination in self._under_way:
            return
        batch = self._owner.take_batch(destination)
        if batch is None:
            return
        token = self._under_way[destination] = object()

        def respond(response: ResponseT | None) -> None:
            if self._under_way.get(destination) is not token:
                return
            del self._under_way[destination]
            go_on = True
            try:
                go_on = self._owner.batch_answered(batch, response)
            finally:
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
    """Call all of them in order, also those after one that raises; what was raised is raised in the end."""
    with ExitStack() as stack:
        for callback in reversed(list(callbacks)):
            stack.callback(callback)
