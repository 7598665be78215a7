"""Session timeouts of members and pending members.

Each member has one `DelayedHeartbeat` in the purgatory. A heartbeat, sync or commit completes it and starts the next;
if none comes within the session timeout, it expires and the member is removed. A member whose request is parked in the
coordinator does not expire (`MemberMetadata.has_satisfied_heartbeat`); its next session starts when the request is
answered. A pending member's session completes when it joins.

Kafka: DelayedHeartbeat, GroupCoordinator.completeAndScheduleNextHeartbeatExpiration.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from odradek.coordinator.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemberKey:
    """Watch key of a member's session."""

    group_id: str
    member_id: str


class DelayedHeartbeat(DelayedOperation):
    """Expires the member unless a heartbeat, sync or commit comes first."""

    __slots__ = ("_group", "_is_pending", "_member_id", "_sessions")

    def __init__(
        self, sessions: MemberSessions, group: GroupMetadata, member_id: str, *, is_pending: bool, timeout_ms: int
    ) -> None:
        super().__init__(timeout_ms)
        self._sessions = sessions
        self._group = group
        self._member_id = member_id
        self._is_pending = is_pending

    def try_complete(self) -> bool:
        return self._is_over() and self.force_complete()

    def _is_over(self) -> bool:
        group = self._group
        if group.is_dead:
            return True
        member = group.get(self._member_id)
        if self._is_pending:
            return member is not None or not group.is_pending(self._member_id)
        return member is None or member.has_satisfied_heartbeat

    def on_complete(self) -> None:
        """Does nothing: the caller that completed this session starts the next one."""

    def on_expiration(self) -> None:
        self._sessions.expire(self._group, self._member_id, is_pending=self._is_pending)


class MemberSessions:
    """Starts, renews and ends sessions. `on_expired` and `on_pending_expired` remove the member from the group."""

    __slots__ = ("_on_expired", "_on_pending_expired", "purgatory")

    def __init__(
        self,
        timer: SystemTimer,
        *,
        on_expired: Callable[[GroupMetadata, MemberMetadata], None],
        on_pending_expired: Callable[[GroupMetadata, str], None],
    ) -> None:
        self.purgatory = DelayedOperationPurgatory[DelayedHeartbeat]("Heartbeat", timer)
        self._on_expired = on_expired
        self._on_pending_expired = on_pending_expired

    @property
    def open_count(self) -> int:
        """Sessions that have neither completed nor expired."""
        return self.purgatory.num_delayed

    def renew(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """Complete the current session and start the next one.

        Kafka: GroupCoordinator.completeAndScheduleNextHeartbeatExpiration.
        """
        self._restart(group, member, member.session_timeout_ms)

    def start_joining(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """Start the session of a new member whose first join is parked."""
        self._restart(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def start_pending(self, group: GroupMetadata, member_id: str, timeout_ms: int) -> None:
        """Start the timeout within which a client must join with the id it was given.

        Kafka: GroupCoordinator.addPendingMemberExpiration.
        """
        self._watch(group, member_id, is_pending=True, timeout_ms=timeout_ms)

    def end(self, group: GroupMetadata, member_id: str) -> None:
        """Complete the session of a removed member or of a member of a dead group.

        Kafka: GroupCoordinator.removeHeartbeatForLeavingMember.
        """
        self.purgatory.check_and_complete(MemberKey(group.group_id, member_id))

    def expire(self, group: GroupMetadata, member_id: str, *, is_pending: bool) -> None:
        """Kafka: GroupCoordinator.onExpireHeartbeat."""
        if group.is_dead:
            return
        if is_pending:
            if group.is_pending(member_id):
                _log.info(
                    "Pending member %s in group %s has been removed after session timeout expiration",
                    member_id,
                    group.group_id,
                )
                self._on_pending_expired(group, member_id)
            return
        member = group.get(member_id)
        if member is not None and not member.has_satisfied_heartbeat:
            _log.info("Member %s in group %s has failed, removing it from the group", member_id, group.group_id)
            self._on_expired(group, member)

    def _restart(self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int) -> None:
        member.heartbeat_satisfied = True
        self.purgatory.check_and_complete(MemberKey(group.group_id, member.member_id))
        member.heartbeat_satisfied = False
        self._watch(group, member.member_id, is_pending=False, timeout_ms=timeout_ms)

    def _watch(self, group: GroupMetadata, member_id: str, *, is_pending: bool, timeout_ms: int) -> None:
        session = DelayedHeartbeat(self, group, member_id, is_pending=is_pending, timeout_ms=timeout_ms)
        self.purgatory.try_complete_else_watch(session, [MemberKey(group.group_id, member_id)])
