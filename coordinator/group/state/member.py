"""One member of a group: what it said when it joined, and which of its requests is parked.

A member waits in at most one place at a time: in a join (`awaiting_join`) between its JoinGroup and the join barrier,
or in a sync (`awaiting_sync`) between its SyncGroup and the leader's assignment. Who answers the request takes the
callback out, so that it can be called once only. A member that waits is alive by definition: its connection is busy
with the very request, it could not heartbeat if it wanted to.

Kafka: MemberMetadata.
"""

from __future__ import annotations

from collections.abc import Container

from odradek.coordinator.ports import Respond
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols a member supports, the most wanted first."""


class MemberMetadata:
    """A member, keyed in the group by `member_id` (which changes when a static member comes back)."""

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
        # A member that has never been answered does not know its id and cannot heartbeat: its session is the join's
        # time-out.
        self.is_new = False
        # Set when a sign of life arrives, cleared when the next one is due (see sessions.py).
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
        """In the order of preference, each once: a member that lists one twice must not be counted as two."""
        return list(dict.fromkeys(name for name, _ in self.protocols))

    def metadata(self, protocol_name: str) -> bytes:
        """What the member said about the protocol; KeyError if it does not speak it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(f"member {self.member_id} does not support protocol {protocol_name}")

    def vote(self, candidates: Container[str]) -> str:
        """The first of the member's protocols that is a candidate."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise KeyError(f"member {self.member_id} supports none of the candidate protocols")

    def take_sync(self) -> Respond[SyncGroupResponse] | None:
        """The parked sync, which the caller now has to answer."""
        respond, self.awaiting_sync = self.awaiting_sync, None
        return respond

    def __repr__(self) -> str:
        return (
            f"MemberMetadata(memberId={self.member_id}, groupInstanceId={self.group_instance_id}, "
            f"clientId={self.client_id}, clientHost={self.client_host}, sessionTimeoutMs={self.session_timeout_ms}, "
            f"rebalanceTimeoutMs={self.rebalance_timeout_ms}, supportedProtocols={self.protocol_names})"
        )
