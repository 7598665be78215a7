"""The ways from this broker to the others: the ports.

A broker talks to other brokers with Kafka's own requests and in nothing else, so a JVM broker can be at either end. A
`BrokerLink` is one connection to one broker; `ToController` finds the controller, wherever it is. A real broker makes
links of sockets; a simulation, of whatever it likes.

Kafka: BlockingSend, InterBrokerSendThread and NodeToControllerChannelManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.protocol.codec.schema import Response

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.codec.schema import Request

ResponseT = TypeVar("ResponseT", bound=Response)


class BrokerLink(Protocol):
    """One connection to one broker: opened when it is first needed, and anew after a failure. Requests are sent one at
    a time, in the order in which they were handed over.
    """

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        """Send a request and wait for its answer. `version` None: the highest that both ends know.

        Raises: OSError (TimeoutError is one) if there was no answer; the request may have been carried out.
        """

    def close(self) -> None:
        """Hang up; whoever waits for an answer gets an OSError."""


class MakeLink(Protocol):
    def __call__(self, end_point: EndPoint, /, *, client_id: str) -> BrokerLink:
        """A link to the broker behind an endpoint. Nothing is connected yet."""


class ToController(Protocol):
    """The way to the controller of the moment."""

    async def ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None, version: int | None = None
    ) -> ResponseT:
        """The controller's answer. One request at a time; after a failure, or if the one who was asked is not the
        controller, it is sent again, to the controller of then, for as long as `timeout_ms` says (None: forever).
        `version` is as in `BrokerLink.exchange`.

        Raises: TimeoutError.
        """
