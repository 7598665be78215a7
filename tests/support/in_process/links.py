"""Links whose answers or failures a test sets, and which record the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import ListenerSecurity
from odradek.broker.inter_broker.broker_links import BrokerLinks
from odradek.broker.inter_broker.own_link import OwnLink
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.network.requests.request import RequestContext
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

ResponseT = TypeVar("ResponseT", bound=Response)
OWN_ID = 1


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class FakeLink:
    """`answers` gives the response to a request, or raises what the link shall fail with."""

    def __init__(self, end_point: EndPoint, client_id: str, answers: Callable[[EndPoint, Request], Response]) -> None:
        self.end_point = end_point
        self.client_id = client_id
        self.asked: list[tuple[Request, int | None, int]] = []
        self.is_closed = False
        self._answers = answers

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        assert not self.is_closed
        self.asked.append((request, version, timeout_ms))
        await asyncio.sleep(0)
        response = self._answers(self.end_point, request)
        assert isinstance(response, response_type)
        return response

    def close(self) -> None:
        self.is_closed = True


class FakeLinks:
    """Implements `MakeLink`; `brokers` are those the metadata cache knows, by id, each with its port."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.made: list[FakeLink] = []
        self.cache = MetadataCache(OWN_ID)
        self.answer: Callable[[EndPoint, Request], Response] = _no_answer
        self.own_link = OwnLink(OWN_ID, "PLAINTEXT", self.timer)

    def __call__(self, end_point: EndPoint, /, *, client_id: str) -> FakeLink:
        self.made.append(FakeLink(end_point, client_id, lambda point, request: self.answer(point, request)))
        return self.made[-1]

    @property
    def asked(self) -> list[tuple[int, Request]]:
        """The ports that were asked, and what; link by link."""
        return [(link.end_point.port, request) for link in self.made for request, _, _ in link.asked]

    def know(self, controller_id: int, brokers: dict[int, int], listener: str = "PLAINTEXT") -> None:
        """Put a cluster into the metadata cache: the ports of its brokers."""
        live = [
            UpdateMetadataBroker(
                id=broker_id, endpoints=[UpdateMetadataEndpoint(host=f"host{broker_id}", port=port, listener=listener)]
            )
            for broker_id, port in brokers.items()
        ]
        self.cache.update(UpdateMetadataRequest(controller_id=controller_id, live_brokers=live))

    def broker_links(self, client_id: str = "me") -> BrokerLinks:
        return BrokerLinks(
            self,
            self.own_link,
            self.cache,
            broker_id=OWN_ID,
            listener=ListenerSecurity("PLAINTEXT", SecurityProtocol.PLAINTEXT),
            client_id=client_id,
        )

    async def advance(self, ms: int) -> None:
        await turns()
        self.clock.advance(ms)
        self.timer.advance()
        await turns()


def _no_answer(end_point: EndPoint, request: Request) -> Response:
    raise ConnectionResetError("nobody answers")


def config(settings: dict[str, str] | None = None) -> BrokerConfig:
    """Of a broker that is a member of a cluster."""
    return BrokerConfig(
        {
            "zookeeper.connect": "zk",
            "broker.id": str(OWN_ID),
            "listeners": "PLAINTEXT://:9092",
            "advertised.listeners": "PLAINTEXT://localhost:9092",
            "log.dirs": "unused",
            **(settings or {}),
        }
    )


class OwnAnswers:
    """Takes the place of the dispatcher for requests of this broker to itself."""

    def __init__(self, answer: Callable[[Request], Response | None]) -> None:
        self.answer = answer
        self.versions: list[int] = []

    def serve(self, ctx: RequestContext, request: Request) -> None:
        self.versions.append(ctx.header.api_version)
        response = self.answer(request)
        if response is not None:
            ctx.reply(response)
