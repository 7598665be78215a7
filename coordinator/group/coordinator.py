"""The group coordinator's API for the request handlers: one method per request.

Each method takes the client's context, the decoded request, and `respond`, which gets the response in the shape of the
request's version: at once, when a barrier completes, or when an append is committed. The handlers authorize, and pass
only topics that exist and that the client may see; all other decisions of these APIs are made here and below.

Kafka: GroupCoordinator, GroupCoordinatorAdapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.group_administration import (
    describe_group,
    group_filter,
    list_group,
    not_described,
)
from odradek.coordinator.group.group_metadata_manager import GroupMetadataManager
from odradek.coordinator.group.members.joining import GroupJoiner, Join
from odradek.coordinator.group.members.membership import Membership
from odradek.coordinator.group.members.rebalance import Rebalancer
from odradek.coordinator.group.offsets.offset_api import Outcome
from odradek.coordinator.group.offsets.offset_service import OffsetService
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupRequest
from odradek.coordinator.group.state.member import Protocols
from odradek.coordinator.group.state.responses import (
    UNKNOWN_MEMBER_ID,
    join_error,
    join_responder,
    shape_leave_group,
    sync_error,
)
from odradek.coordinator.group.validation import refusal_for
from odradek.coordinator.ports import ConsumerOffsetTree, CoordinatorLog, Respond, TransactionVerifier
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribedGroup
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.periodic import PeriodicTask
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.sliced_work import Steps
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from odradek.coordinator.group.observer import GroupObserver
    from odradek.coordinator.runtime import PartitionOwnership

__all__ = ["GroupConfig", "GroupCoordinator", "GroupRequestContext"]


class GroupCoordinator:
    """Consumer groups of the classic protocol, for the partitions of `__consumer_offsets` that this broker leads."""

    def __init__(
        self,
        *,
        config: GroupConfig,
        log: CoordinatorLog,
        clock: Clock,
        timer: SystemTimer,
        new_uuid: Callable[[], str],
        consumer_offset_tree: ConsumerOffsetTree | None = None,
        verify_transaction: TransactionVerifier,
    ) -> None:
        self._config = config
        self._groups = GroupMetadataManager(
            config=config,
            log=log,
            clock=clock,
            timer=timer,
            on_loaded=self._on_group_loaded,
            on_gone=self._on_group_gone,
        )
        self._rebalancer = Rebalancer(config, timer, self._groups.store_group)
        self._joiner = GroupJoiner(config, self._rebalancer, self._groups.store_group, new_uuid)
        self._membership = Membership(self._rebalancer)
        self._offsets = OffsetService(
            self._groups, self._rebalancer.sessions, clock, consumer_offset_tree, verify_transaction
        )
        self._sweep = PeriodicTask(
            timer, "offset-expiration", config.offsets_retention_check_interval_ms, self._groups.expire_offsets
        )

    # -- start, stop, elections ------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin to serve."""
        self._groups.is_active = True
        self._groups.expire_offsets()
        self._sweep.start()

    def shutdown(self) -> None:
        """Stop serving; parked requests get NOT_COORDINATOR."""
        self._groups.is_active = False
        self._sweep.cancel()
        self._groups.ownership.resign_all()

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker has become leader of a partition of `__consumer_offsets`: load its groups.

        Kafka: GroupCoordinator.onElection.
        """
        self._groups.ownership.elect(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None) -> None:
        """This broker is no longer the leader (epoch None: the replica is deleted): unload its groups.

        Kafka: GroupCoordinator.onResignation.
        """
        self._groups.ownership.resign(partition, epoch)

    def on_partitions_deleted(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Topics were deleted: remove the offsets committed for them, in every group.

        Kafka: GroupCoordinator.handleDeletedPartitions.
        """
        self._groups.forget_partitions(topic_partitions)

    def observe(self, observer: GroupObserver) -> None:
        """Call the observer for each event of a group from now on."""
        self._groups.observer = self._rebalancer.observer = observer

    @property
    def purgatories(self) -> tuple[DelayedOperationPurgatory[DelayedOperation], ...]:
        """The barriers of rebalances, and the sessions of members."""
        return (self._rebalancer.purgatory, self._rebalancer.sessions.purgatory)  # type: ignore[return-value]

    @property
    def expired_offsets(self) -> int:
        """Offsets that were removed because of their age, since the start."""
        return self._groups.expired_offsets

    @property
    def offset_commits(self) -> int:
        """Commits of one or more offsets that were written, since the start.

        Kafka: GroupMetadataManager.offsetCommitsSensor.
        """
        return self._groups.offset_commits

    @property
    def deleted_offsets(self) -> int:
        """Offsets that OffsetDelete removed, since the start. Kafka: GroupCoordinator.offsetDeletionSensor."""
        return self._offsets.deleted_offsets

    @property
    def ownership(self) -> PartitionOwnership:
        """The partitions of `__consumer_offsets` that this broker coordinates."""
        return self._groups.ownership

    @property
    def completed_rebalances(self) -> int:
        """Rebalances in which the leader has sent its assignment, since the start.

        Kafka: GroupCoordinator.groupCompletedRebalanceSensor.
        """
        return self._rebalancer.completed_rebalances

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group (for FindCoordinator)."""
        return self._groups.partition_for(group_id)

    @property
    def groups(self) -> Iterable[GroupMetadata]:
        """The groups in memory, for metrics and tests."""
        return self._groups.groups

    @property
    def waiting_count(self) -> int:
        """Open sessions and barriers, for metrics and tests."""
        return self._rebalancer.sessions.open_count + self._rebalancer.open_barrier_count

    def _on_group_loaded(self, group: GroupMetadata) -> None:
        """Kafka: GroupCoordinator.onGroupLoaded."""
        if len(group) > self._config.group_max_size:
            self._rebalancer.prepare_rebalance(
                group,
                f"freshly loaded group is over capacity ({self._config.group_max_size}); "
                "rebalancing to let consumers commit offsets",
            )
        for member in group.members:
            self._rebalancer.sessions.renew(group, member)

    def _on_group_gone(self, group: GroupMetadata) -> None:
        """The group is dead: answer its parked requests with NOT_COORDINATOR.

        Kafka: GroupCoordinator.onGroupUnloaded.
        """
        for member in list(group.members):
            group.answer_join(member, join_error(member.member_id, ErrorCode.NOT_COORDINATOR))
            if (respond := member.take_sync()) is not None:
                respond(sync_error(ErrorCode.NOT_COORDINATOR))
        self._rebalancer.release(group)

    # -- membership ------------------------------------------------------------------------------------------

    def join_group(
        self,
        context: GroupRequestContext,
        request: JoinGroupRequest,
        respond: Respond[JoinGroupResponse],
        protocols: Protocols | None = None,
    ) -> None:
        """`protocols`: those of the request, where a client names so many that they were listed in steps; anything if
        there is a `join_refusal`.
        """
        join = Join.of(context, request, join_responder(respond, context.api_version), protocols)
        refusal = self.join_refusal(request)
        if refusal != ErrorCode.NONE:
            join.fail(refusal)
            return
        is_newcomer = join.member_id == UNKNOWN_MEMBER_ID
        group = self._groups.get_or_create(request.group_id) if is_newcomer else self._groups.get(request.group_id)
        assert group is not None
        self._joiner.join(group, join)

    def join_refusal(self, request: JoinGroupRequest) -> ErrorCode:
        """Why the join is refused, whatever its protocols and the state of the group are; NONE if it is not."""
        refusal = refusal_for(self._groups, request.group_id)
        if refusal != ErrorCode.NONE:
            return refusal
        config = self._config
        timeout_ms = request.session_timeout_ms
        if not config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member_id != UNKNOWN_MEMBER_ID and self._groups.get(request.group_id) is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def sync_group(
        self, context: GroupRequestContext, request: SyncGroupRequest, respond: Respond[SyncGroupResponse]
    ) -> None:
        if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            respond(sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        refusal = refusal_for(self._groups, request.group_id)
        if refusal == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance of this sync is lost, so the member must join again; and old clients do not expect
            # COORDINATOR_LOAD_IN_PROGRESS in a SyncGroup response.
            refusal = ErrorCode.REBALANCE_IN_PROGRESS
        group = self._groups.get(request.group_id)
        if refusal != ErrorCode.NONE:
            respond(sync_error(refusal))
        elif group is None:
            respond(sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._membership.sync(group, request, respond)

    def heartbeat(
        self, context: GroupRequestContext, request: HeartbeatRequest, respond: Respond[HeartbeatResponse]
    ) -> None:
        respond(HeartbeatResponse(error_code=self._heartbeat(request)))

    def _heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        refusal = refusal_for(self._groups, request.group_id)
        if refusal == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE  # the sender is most likely a member of the group that is being loaded
        if refusal != ErrorCode.NONE:
            return refusal
        group = self._groups.get(request.group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._membership.heartbeat(group, request)

    def leave_group(
        self, context: GroupRequestContext, request: LeaveGroupRequest, respond: Respond[LeaveGroupResponse]
    ) -> Steps:
        """Each member leaves in a step."""
        identities = request.members if context.api_version >= 3 else [MemberIdentity(member_id=request.member_id)]
        error = refusal_for(self._groups, request.group_id)
        group = self._groups.get(request.group_id)
        if error == ErrorCode.NONE and group is not None and group.is_dead:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = LeaveGroupResponse(error_code=error, members=[])
        if error == ErrorCode.NONE:
            for identity in identities:
                yield None
                error = refusal_for(self._groups, request.group_id)
                if error != ErrorCode.NONE:  # the rest of them is with another coordinator, which must be asked
                    response = LeaveGroupResponse(error_code=error, members=[])
                    break
                group = self._groups.get(request.group_id)
                member_error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._membership.leave(group, identity)
                response.members.append(
                    MemberResponse(
                        member_id=identity.member_id,
                        group_instance_id=identity.group_instance_id,
                        error_code=member_error,
                    )
                )
        respond(shape_leave_group(response, context.api_version))

    # -- offsets ---------------------------------------------------------------------------------------------------

    def commit_offsets(
        self, context: GroupRequestContext, request: OffsetCommitRequest, respond: Respond[Outcome]
    ) -> Steps:
        """`respond` gets the error of each partition."""
        return self._offsets.commit(context, request, respond)

    def commit_transactional_offsets(
        self, context: GroupRequestContext, request: TxnOffsetCommitRequest, respond: Respond[Outcome]
    ) -> Steps:
        """`respond` gets the error of each partition."""
        return self._offsets.commit_transactional(context, request, respond)

    def on_transaction_completed(self, producer_id: int, partitions: Iterable[int], *, committed: bool) -> None:
        """A marker of the producer was written to these partitions of `__consumer_offsets`.

        Kafka: GroupCoordinator.scheduleHandleTxnCompletion.
        """
        self._groups.complete_transaction(producer_id, partitions, committed=committed)

    def fetch_offsets(
        self, context: GroupRequestContext, request: OffsetFetchRequest, respond: Respond[OffsetFetchResponse]
    ) -> Steps:
        return self._offsets.fetch(context, request, respond)

    def delete_offsets(
        self, context: GroupRequestContext, request: OffsetDeleteRequest, respond: Respond[OffsetDeleteResponse]
    ) -> Steps:
        return self._offsets.delete(request, respond)

    # -- administration --------------------------------------------------------------------------------------

    def describe_group(self, group_id: str) -> DescribedGroup:
        """One group of a DescribeGroups request. Kafka: GroupCoordinator.handleDescribeGroup."""
        error = refusal_for(self._groups, group_id, empty_id_allowed=True)
        if error == ErrorCode.NONE:
            return describe_group(group_id, self._groups.get(group_id))
        return not_described(group_id, error)

    def list_groups(self, request: ListGroupsRequest, respond: Respond[ListGroupsResponse]) -> Steps:
        """All groups in memory. While others are being loaded, the error is COORDINATOR_LOAD_IN_PROGRESS."""
        response = ListGroupsResponse(error_code=ErrorCode.NONE, groups=[])
        if not self._groups.is_active:
            response.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            if self._groups.ownership.is_anything_loading:
                response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            is_wanted = group_filter(request)
            for group in list(self._groups.groups):
                if is_wanted(group):
                    response.groups.append(list_group(group))
                yield None
        respond(response)

    def delete_group(self, group_id: str) -> ErrorCode:
        """Remove a group without members, and its offsets: one group of a DeleteGroups request (KIP-229).

        Kafka: GroupCoordinator.handleDeleteGroups.
        """
        error = refusal_for(self._groups, group_id, empty_id_allowed=True)
        if error != ErrorCode.NONE:
            return error
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = group.lifecycle.answer(GroupRequest.DELETE)
        if error == ErrorCode.NONE:
            self._groups.delete(group)
        return error
