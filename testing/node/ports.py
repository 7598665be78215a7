"""The port between a facade and the broker that runs for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.testing.errors import BrokerStopped as BrokerStopped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future


class Started(NamedTuple):
    """What a facade has to know of a broker that serves."""

    addresses: dict[str, str]
    """`host:port` by the name of the listener, in the order of the configuration."""
    cluster_id: str
    broker_id: int


class Node(Protocol):
    """A broker in a thread or in a process. Its methods return at once, in any thread.

    A fork of the process that has made the node has no part in it: `submit` raises BrokerStopped, `stop` does nothing.
    """

    def start(self) -> Future[Started]:
        """Start it; to be called once. The future's errors: StartupError with one line for operators."""

    def submit(self, name: str, arguments: Mapping[str, object]) -> Future[object]:
        """Ask a question. The future's errors: those of the question, BrokerStopped."""

    def stop(self) -> Future[None]:
        """Stop it; the future is done when its process has ended, or its thread ends: that has nothing left to do."""
