"""The controller's requests to one broker, over a link, in the versions of `metadata_version` without ApiVersions.

Kafka: RequestSendThread, ControllerChannelManager.addNewBroker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from odradek.broker.inter_broker.ports import BrokerLink
    from odradek.controller.states.request_batch import ControlRequest, ControlResponse
    from odradek.protocol.metadata_version import MetadataVersion


class LinkTransport:
    """Implements `controller.channels.ControlTransport`."""

    def __init__(self, link: BrokerLink, timeout_ms: int, metadata_version: MetadataVersion) -> None:
        self._link = link
        self._metadata_version = metadata_version
        self._timeout_ms = timeout_ms

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        exchange, timeout_ms = self._link.exchange, self._timeout_ms
        match request:
            case LeaderAndIsrRequest():
                version = self._metadata_version.leader_and_isr_request_version
                return await exchange(request, LeaderAndIsrResponse, version=version, timeout_ms=timeout_ms)
            case UpdateMetadataRequest():
                version = self._metadata_version.update_metadata_request_version
                return await exchange(request, UpdateMetadataResponse, version=version, timeout_ms=timeout_ms)
            case StopReplicaRequest():
                version = self._metadata_version.stop_replica_request_version
                return await exchange(request, StopReplicaResponse, version=version, timeout_ms=timeout_ms)

    def close(self) -> None:
        self._link.close()


class NoListener:
    """Refuses requests to a broker that does not advertise the controller's listener. Implements `ControlTransport`."""

    def __init__(self, broker_id: int, listener_name: str) -> None:
        self._reason = f"broker {broker_id} has no listener {listener_name}"

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        raise ConnectionRefusedError(self._reason)

    def close(self) -> None:
        """Nothing to close."""
