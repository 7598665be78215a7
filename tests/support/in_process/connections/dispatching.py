"""A dispatcher behind a connection without a socket, whose handlers are functions of a test."""

from __future__ import annotations

import asyncio
import struct
import sys
import types
from collections.abc import Callable, Coroutine
from types import SimpleNamespace

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.dispatch import Dispatcher
from odradek.broker.metadata.first_metadata import FirstMetadata
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.timer.sliced_work import SlicedWork
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.connections.network import FakeOwner, Link

Handle = Callable[[object, RequestContext, Request], None]


class Broker:
    """A dispatcher whose handlers are functions of the test, behind a connection without a socket."""

    def __init__(self, **settings: str) -> None:
        """`settings` of the broker, with `_` for `.`."""
        config = BrokerConfig({key.replace("_", "."): text for key, text in settings.items()})
        self.handlers: dict[ApiKey, str] = {ApiKey.API_VERSIONS: "odradek.broker.apis.connection.api_versions"}
        self.modules: list[str] = []
        self.tasks: list[asyncio.Future[None]] = []
        owner = FakeOwner()
        self.timer = SystemTimer(owner.clock)
        self.slices = SlicedWork(self.timer, owner.clock, in_turns=True)
        self.first_metadata_timer = SystemTimer(owner.clock)
        self.first_metadata = FirstMetadata(self.first_metadata_timer, owner.call_soon, has_topics=False)
        self.first_metadata.is_awaited = False
        self.services = SimpleNamespace(
            config=config, clock=owner.clock, authorizer=None, metadata_cache=MetadataCache(0)
        )
        self.dispatcher = Dispatcher(
            self.services,  # type: ignore[arg-type]
            self.in_background,
            self.first_metadata,
            self.slices,
            self.handlers,
            apis=config.apis,
        )
        owner.handle = self.dispatcher.dispatch
        self.owner = owner
        self.link = Link(owner)

    def in_background(self, work: Coroutine[object, object, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def serve(self, key: ApiKey, handle: Handle, **attributes: object) -> None:
        name = f"test_handlers_{key.name}"
        module = types.ModuleType(name)
        module.handle = handle  # type: ignore[attr-defined]
        for attribute, value in attributes.items():
            setattr(module, attribute, value)
        sys.modules[name] = module
        self.modules.append(name)
        self.handlers[key] = name

    def send(self, payload: bytes) -> None:
        self.link.receive(struct.pack(">i", len(payload)) + payload)

    def call(self, request: Request, version: int) -> Response:
        self.send(encode_request(RequestHeader(request.API_KEY, version, 5, "me"), request))
        return self.answer(request.API_KEY, version)

    def answer(self, key: int, version: int) -> Response:
        data = bytes(self.link.wire.data)
        (size,) = struct.unpack_from(">i", data)
        assert len(data) == 4 + size
        self.link.wire.data.clear()
        correlation_id, response = decode_response(key, version, data[4:])
        assert correlation_id == 5
        return response

    def closed(self) -> tuple[CloseReason, str]:
        assert self.link.transport.is_aborted
        self.link.connection.connection_lost(None)
        return self.owner.closed[-1]

    def close(self) -> None:
        for name in self.modules:
            del sys.modules[name]
