"""Members of consumer groups on bare connections: they join, and rejoin until their group has all of them."""

from __future__ import annotations

import asyncio
from typing import Final

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.benchmarks.clients.connections import Connection
from tests.support.wire.requests import build

SESSION_TIMEOUT_MS: Final = 60_000
LOOK_PAUSE_S: Final = 0.1
"""Between two heartbeats of a member that waits for others."""
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 7, 4, 4, 4


class Group:
    """A group that is to have so many members."""

    def __init__(self, name: str, members: int) -> None:
        self.name = name
        self.members = members
        self._complete: set[int] = set()

    async def join(self, connection: Connection) -> str:
        """Join; returns the member id when the group is stable with all members."""
        member_id = ""
        while True:
            member_id, generation = await self._join_once(connection, member_id)
            if generation and await self._is_complete(connection, member_id, generation):
                return member_id

    async def _join_once(self, connection: Connection, member_id: str) -> tuple[str, int]:
        """The member id and the generation of which it is a member, 0 if it must join again."""
        request = build(
            ApiKey.JOIN_GROUP,
            group_id=self.name,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": bytes(50)}],
        )
        joined = await connection.call(request, JOIN_VERSION)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return joined.member_id, 0
        assert joined.error_code == ErrorCode.NONE, joined
        if len(joined.members) == self.members:
            self._complete.add(joined.generation_id)
        assignments = [{"member_id": each.member_id, "assignment": bytes(50)} for each in joined.members]
        request = build(
            ApiKey.SYNC_GROUP,
            group_id=self.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=assignments,
        )
        synced = await connection.call(request, SYNC_VERSION)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return joined.member_id, 0
        assert synced.error_code == ErrorCode.NONE, synced
        return joined.member_id, joined.generation_id

    async def _is_complete(self, connection: Connection, member_id: str, generation: int) -> bool:
        """Whether this generation has all members; False when another one begins."""
        beat = build(ApiKey.HEARTBEAT, group_id=self.name, generation_id=generation, member_id=member_id)
        while generation not in self._complete:
            await asyncio.sleep(LOOK_PAUSE_S)
            error = (await connection.call(beat, HEARTBEAT_VERSION)).error_code
            if error == ErrorCode.REBALANCE_IN_PROGRESS:
                return False
            assert error == ErrorCode.NONE, error
        return True

    async def leave(self, connection: Connection, member_ids: list[str]) -> None:
        """All of them at once."""
        identities = [{"member_id": member_id} for member_id in member_ids]
        answer = await connection.call(build(ApiKey.LEAVE_GROUP, group_id=self.name, members=identities), LEAVE_VERSION)
        assert answer.error_code == ErrorCode.NONE, answer
