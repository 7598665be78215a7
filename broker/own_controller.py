"""The way to the controller for a broker that is alone: it is the controller, or is about to be.

Implements `links.ToController`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from odradek.protocol.messages.alter_partition import AlterPartitionRequest
from odradek.protocol.schema import Response

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.protocol.schema import Request

ALTER_PARTITION_VERSION = 3

ResponseT = TypeVar("ResponseT", bound=Response)


class OwnController:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def ask(self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None) -> ResponseT:
        assert isinstance(request, AlterPartitionRequest), f"nobody asks the controller {request}"
        return cast("ResponseT", await self._controller.alter_partition(request, ALTER_PARTITION_VERSION))
