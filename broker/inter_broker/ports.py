"""The ports for requests to other brokers.

Brokers use only Kafka's own requests, so the other end may be a JVM broker. A `BrokerLink` is one connection to one
broker; `ToController` sends requests to the present controller. A real broker makes links of sockets, the simulation
makes its own.

Kafka: BlockingSend, InterBrokerSendThread, NodeToControllerChannelManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.protocol.codec.schema import Response

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.codec.schema import Request

ResponseT = TypeVar("ResponseT", bound=Response)


class BrokerLink(Protocol):
    """One connection to one broker. The first request opens it, and the next one after a failure. Requests are sent one
    at a time, in the order of their calls.
    """

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        """Send a request and wait for its answer. `version` None: the highest common version.

        Raises: OSError (TimeoutError is one) if there was no answer; the other broker may have applied the request.
        """

    def close(self) -> None:
        """Close the connection; pending requests raise OSError."""


class MakeLink(Protocol):
    """Makes links."""

    def __call__(self, end_point: EndPoint, /, *, client_id: str) -> BrokerLink:
        """A link to the broker behind an endpoint. Nothing is connected yet."""


class ToController(Protocol):
    """Sends requests to the present controller."""

    async def ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None, version: int | None = None
    ) -> ResponseT:
        """The controller's answer. One request is sent at a time. After a failure, or when the receiver is not the
        controller, it is sent again to the controller at that time, until `timeout_ms` is over (None: forever).
        `version` is as in `BrokerLink.exchange`.

        Raises: TimeoutError.
        """
