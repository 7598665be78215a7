"""One member of a group: its metadata from JoinGroup, and its parked request.

At most one request of a member is parked: its JoinGroup until the join barrier completes (`awaiting_join`), or its
SyncGroup until the leader's assignment is stored (`awaiting_sync`). Taking the callback out clears the field, so that
it is called only once. A member with a parked request is alive: while the request is pending, its client sends no
heartbeat.

Kafka: MemberMetadata.
"""

from __future__ import annotations

from collections.abc import Container

from odradek.coordinator.ports import Respond
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols a member supports, the preferred one first."""


class MemberMetadata:
    """A member. The group's key is `member_id`, which changes when a static member rejoins without an id."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "heartbeat_satisfied",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Respond[JoinGroupResponse] | None = None
        self.awaiting_sync: Respond[SyncGroupResponse] | None = None
        # A member whose first join is not answered yet does not know its id and sends no heartbeat: its session lasts
        # NEW_MEMBER_JOIN_TIMEOUT_MS.
        self.is_new = False
        # Set when a heartbeat, sync or commit arrives, cleared when the next session begins (see sessions.py).
        self.heartbeat_satisfied = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.awaiting_join is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        if self.is_new:
            return self.heartbeat_satisfied
        return self.awaiting_join is not None or self.awaiting_sync is not None or self.heartbeat_satisfied

    @property
    def protocol_names(self) -> list[str]:
        """In order of preference, without duplicates: a protocol listed twice must count as one vote."""
        return list(dict.fromkeys(name for name, _ in self.protocols))

    def metadata(self, protocol_name: str) -> bytes:
        """The member's metadata for the protocol. Raises KeyError if it does not support the protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(f"member {self.member_id} does not support protocol {protocol_name}")

    def vote(self, candidates: Container[str]) -> str:
        """The first of the member's protocols that is a candidate. Raises KeyError if none is."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise KeyError(f"member {self.member_id} supports none of the candidate protocols")

    def take_sync(self) -> Respond[SyncGroupResponse] | None:
        """Unpark the member's sync; the caller must answer it."""
        respond, self.awaiting_sync = self.awaiting_sync, None
        return respond

    def __repr__(self) -> str:
        return (
            f"MemberMetadata(memberId={self.member_id}, groupInstanceId={self.group_instance_id}, "
            f"clientId={self.client_id}, clientHost={self.client_host}, sessionTimeoutMs={self.session_timeout_ms}, "
            f"rebalanceTimeoutMs={self.rebalance_timeout_ms}, supportedProtocols={self.protocol_names})"
        )
