"""How the controller's requests reach this broker when both are one process.

The same request objects that would cross the wire are given to the same handlers; nothing is encoded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.apis import leader_and_isr, stop_replica, update_metadata
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest

if TYPE_CHECKING:
    from odradek.broker.services import Services
    from odradek.controller.request_batch import ControlRequest, ControlResponse

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4


class OwnBroker:
    """The controller's way to the broker it lives in."""

    def __init__(self) -> None:
        self._broker: Services | None = None

    def serve(self, broker: Services) -> None:
        """From here on requests are handled by `broker`; the controller is built before it is."""
        self._broker = broker

    async def handle(self, request: ControlRequest) -> ControlResponse:
        """Apply a control request; the answer comes when what it changed is durable."""
        broker = self._broker
        assert broker is not None, "the controller sent a request before the broker was wired"
        answered: asyncio.Future[ControlResponse] = asyncio.get_running_loop().create_future()
        if isinstance(request, LeaderAndIsrRequest):
            await leader_and_isr.apply(broker, request, LEADER_AND_ISR_VERSION, answered.set_result)
        elif isinstance(request, StopReplicaRequest):
            stop_replica.apply(broker, request, STOP_REPLICA_VERSION, answered.set_result)
        else:
            update_metadata.apply(broker, request, UPDATE_METADATA_VERSION, answered.set_result)
        return await answered
