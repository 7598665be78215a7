"""The group coordinator, as the broker's request handlers see it: one method per API.

Each method takes who asks, the request as it came off the wire, and a `respond` that gets the response in the shape
of the request's version: at once, or when a barrier is passed or an append committed. Handlers authorise, and name
only topics that exist and may be seen; everything else about these APIs is decided here and below.

Before a group is looked at, `_refusal` asks whether this broker may answer for it at all: the id must be valid, the
coordinator started, the group's partition led by this broker and loaded.

Kafka: GroupCoordinator and GroupCoordinatorAdapter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.group_administration import (
    describe_group,
    list_group,
    matches_filters,
    not_described,
)
from odradek.coordinator.group.group_manager import GroupManager
from odradek.coordinator.group.group_metadata import GroupMetadata
from odradek.coordinator.group.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.joining import GroupJoiner, Join
from odradek.coordinator.group.membership import Membership
from odradek.coordinator.group.offset_api import (
    fetched_offsets,
    offset_commit_response,
    offset_delete_response,
    offset_fetch_error,
    offset_fetch_response,
    offsets_to_commit,
    requested_groups,
    requested_partitions,
    transactional_offsets_to_commit,
    txn_offset_commit_response,
)
from odradek.coordinator.group.rebalance import Rebalancer
from odradek.coordinator.group.responses import (
    UNKNOWN_MEMBER_ID,
    join_error,
    join_responder,
    shape_leave_group,
    sync_error,
)
from odradek.coordinator.group.states import GroupRequest, GroupState
from odradek.coordinator.group.validation import validate_offset_commit
from odradek.coordinator.group.zookeeper_offsets import commit_to_tree, fetch_from_tree
from odradek.coordinator.ports import ConsumerOffsetTree, CoordinatorLog, Respond, TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.system_timer import SystemTimer
from odradek.timer.task import TimerTask

__all__ = ["GroupConfig", "GroupCoordinator", "GroupRequestContext"]

_log = logging.getLogger(__name__)


class GroupCoordinator:
    """Consumer groups of the classic protocol, for the partitions of `__consumer_offsets` this broker leads."""

    def __init__(
        self,
        *,
        config: GroupConfig,
        log: CoordinatorLog,
        clock: Clock,
        timer: SystemTimer,
        new_uuid: Callable[[], str],
        consumer_offset_tree: ConsumerOffsetTree | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._timer = timer
        self._tree = consumer_offset_tree
        self._groups = GroupManager(
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
        self._is_active = False
        self._sweep: TimerTask | None = None

    # -- life ------------------------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin to serve. The number of partitions groups are mapped to is fixed from here on."""
        self._groups.fix_partition_count()
        self._is_active = True
        self._sweep_expired_offsets()

    def shutdown(self) -> None:
        """Stop serving: what is parked is told to look for another coordinator."""
        self._is_active = False
        if self._sweep is not None:
            self._sweep.cancel()
        self._groups.ownership.resign_all()

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker has become leader of a partition of `__consumer_offsets`: load its groups."""
        self._groups.ownership.elect(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None) -> None:
        """This broker is no longer the leader (epoch None: the replica is deleted): forget its groups."""
        self._groups.ownership.resign(partition, epoch)

    def on_partitions_deleted(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Topics were deleted: so are the offsets committed for them, in every group."""
        deleted = list(topic_partitions)
        count = 0
        for group in list(self._groups.groups):
            count += self._groups.remove_offsets(group, group.offsets.remove(deleted))
        _log.info("Removed %d offsets of %d deleted partitions", count, len(deleted))

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group (for FindCoordinator)."""
        return self._groups.partition_for(group_id)

    @property
    def groups(self) -> Iterable[GroupMetadata]:
        """The groups in memory, for metrics and tests."""
        return self._groups.groups

    @property
    def waiting_count(self) -> int:
        """Sessions and barriers that are waiting for something, for metrics and tests."""
        return self._rebalancer.sessions.open_count + self._rebalancer.open_barrier_count

    def _sweep_expired_offsets(self) -> None:
        self._groups.expire_offsets()
        self._sweep = self._timer.schedule(
            self._config.offsets_retention_check_interval_ms, self._sweep_expired_offsets
        )

    def _on_group_loaded(self, group: GroupMetadata) -> None:
        if len(group) > self._config.group_max_size:
            self._rebalancer.prepare(
                group,
                f"freshly loaded group is over capacity ({self._config.group_max_size}); "
                "rebalancing to let consumers commit offsets",
            )
        for member in group.members:
            self._rebalancer.sessions.renew(group, member)

    def _on_group_gone(self, group: GroupMetadata) -> None:
        """The group is dead: whoever waits in it is sent to the next coordinator."""
        for member in list(group.members):
            group.answer_join(member, join_error(member.member_id, ErrorCode.NOT_COORDINATOR))
            if (respond := member.take_sync()) is not None:
                respond(sync_error(ErrorCode.NOT_COORDINATOR))
        self._rebalancer.release(group)

    # -- membership ------------------------------------------------------------------------------------------

    def join_group(
        self, context: GroupRequestContext, request: JoinGroupRequest, respond: Respond[JoinGroupResponse]
    ) -> None:
        join = Join.of(context, request, join_responder(respond, context.api_version))
        refusal = self._refusal(request.group_id)
        if refusal != ErrorCode.NONE:
            join.fail(refusal)
            return
        config = self._config
        timeout_ms = join.session_timeout_ms
        if not config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms:
            join.fail(ErrorCode.INVALID_SESSION_TIMEOUT)
            return
        is_newcomer = join.member_id == UNKNOWN_MEMBER_ID
        group = self._groups.get_or_create(request.group_id) if is_newcomer else self._groups.get(request.group_id)
        if group is None:
            join.fail(ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._joiner.join(group, join)

    def sync_group(
        self, context: GroupRequestContext, request: SyncGroupRequest, respond: Respond[SyncGroupResponse]
    ) -> None:
        if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            respond(sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        refusal = self._refusal(request.group_id)
        if refusal == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance this sync belongs to is lost, so the member has to start over with a join; and old clients
            # do not expect to hear of loading here.
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
        refusal = self._refusal(request.group_id)
        if refusal == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE  # it will be a member again when the group is loaded, most likely
        if refusal != ErrorCode.NONE:
            return refusal
        group = self._groups.get(request.group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._membership.heartbeat(group, request)

    def leave_group(
        self, context: GroupRequestContext, request: LeaveGroupRequest, respond: Respond[LeaveGroupResponse]
    ) -> None:
        identities = request.members if context.api_version >= 3 else [MemberIdentity(member_id=request.member_id)]
        error = self._refusal(request.group_id)
        group = self._groups.get(request.group_id)
        if error == ErrorCode.NONE and group is not None and group.is_dead:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = LeaveGroupResponse(error_code=error, members=[])
        if error == ErrorCode.NONE:
            for identity in identities:
                member_error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._membership.leave(group, identity)
                response.members.append(
                    MemberResponse(
                        member_id=identity.member_id,
                        group_instance_id=identity.group_instance_id,
                        error_code=member_error,
                    )
                )
        respond(shape_leave_group(response, context.api_version))

    # -- offsets ---------------------------------------------------------------------------------------------

    def commit_offsets(
        self, context: GroupRequestContext, request: OffsetCommitRequest, respond: Respond[OffsetCommitResponse]
    ) -> None:
        offsets = offsets_to_commit(request, self._clock.time_ms())
        if context.api_version == 0:
            self._commit_to_tree(request.group_id, offsets, respond)
            return
        generation_id = request.generation_id_or_member_epoch
        error = self._refusal(request.group_id, empty_id_allowed=True)
        group: GroupMetadata | None = None
        if error == ErrorCode.NONE:
            group = self._groups.get(request.group_id)
            if group is None and generation_id < 0:
                # Somebody who only keeps offsets here.
                group = self._groups.get_or_create(request.group_id)
            error = self._validate_commit(group, request)
        if group is None or error != ErrorCode.NONE:
            respond(offset_commit_response(dict.fromkeys(offsets, error)))
            return
        if group.state is not GroupState.EMPTY:
            self._rebalancer.sessions.renew(group, group[request.member_id])
        self._groups.store_offsets(group, offsets, lambda outcome: respond(offset_commit_response(outcome)))

    @staticmethod
    def _validate_commit(group: GroupMetadata | None, request: OffsetCommitRequest) -> ErrorCode:
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION
        error = validate_offset_commit(
            group,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            transactional=False,
        )
        return group.lifecycle.answer(GroupRequest.COMMIT) if error == ErrorCode.NONE else error

    def _commit_to_tree(
        self, group_id: str, offsets: dict[TopicPartition, OffsetAndMetadata], respond: Respond[OffsetCommitResponse]
    ) -> None:
        if self._tree is None:
            respond(offset_commit_response(dict.fromkeys(offsets, ErrorCode.UNSUPPORTED_VERSION)))
            return
        refused = {
            topic_partition: ErrorCode.OFFSET_METADATA_TOO_LARGE
            for topic_partition, offset in offsets.items()
            if not self._groups.fits(offset.metadata)
        }
        commit_to_tree(self._tree, group_id, offsets, refused, respond)

    def commit_transactional_offsets(
        self, context: GroupRequestContext, request: TxnOffsetCommitRequest, respond: Respond[TxnOffsetCommitResponse]
    ) -> None:
        """Offsets that become the group's when the producer's transaction commits.

        That the transaction is open and includes the group's partition has been verified by the handler.
        """
        offsets = transactional_offsets_to_commit(request, self._clock.time_ms())
        error = self._refusal(request.group_id)
        group: GroupMetadata | None = None
        if error == ErrorCode.NONE:
            group = self._groups.get_or_create(request.group_id)
            error = validate_offset_commit(
                group, request.generation_id, request.member_id, request.group_instance_id, transactional=True
            )
        if group is None or error != ErrorCode.NONE:
            respond(txn_offset_commit_response(dict.fromkeys(offsets, error)))
            return
        self._groups.store_offsets(
            group,
            offsets,
            lambda outcome: respond(txn_offset_commit_response(outcome)),
            TransactionalProducer(request.producer_id, request.producer_epoch),
        )

    def on_transaction_completed(self, producer_id: int, partitions: Iterable[int], *, committed: bool) -> None:
        """A marker of the producer was written to these partitions of `__consumer_offsets`."""
        self._groups.complete_transaction(producer_id, partitions, committed=committed)

    def fetch_offsets(
        self, context: GroupRequestContext, request: OffsetFetchRequest, respond: Respond[OffsetFetchResponse]
    ) -> None:
        version = context.api_version
        groups = requested_groups(request, version)
        if version == 0:
            self._fetch_from_tree(groups[0], respond)
            return
        require_stable = version >= 7 and request.require_stable
        answers = [self.fetch_group_offsets(group, version, require_stable=require_stable) for group in groups]
        respond(offset_fetch_response(answers, version))

    def fetch_group_offsets(
        self, group: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """One group of an OffsetFetch, for a handler that authorises group by group (version 1 and later)."""
        error = self._refusal(group.group_id, empty_id_allowed=True)
        if error != ErrorCode.NONE:
            return offset_fetch_error(group, error, version)
        partitions = None if group.topics is None else requested_partitions(group.topics)
        topics = fetched_offsets(self._groups.get(group.group_id), partitions, require_stable=require_stable)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)

    def _fetch_from_tree(self, group: OffsetFetchRequestGroup, respond: Respond[OffsetFetchResponse]) -> None:
        if self._tree is None:
            respond(offset_fetch_response([offset_fetch_error(group, ErrorCode.UNSUPPORTED_VERSION, 0)], 0))
        else:
            fetch_from_tree(self._tree, group, respond)

    def delete_offsets(
        self, context: GroupRequestContext, request: OffsetDeleteRequest, respond: Respond[OffsetDeleteResponse]
    ) -> None:
        """Remove offsets of topics nobody in the group is subscribed to (KIP-496)."""
        error = self._refusal(request.group_id)
        group = self._groups.get(request.group_id)
        if error == ErrorCode.NONE:
            error = self._validate_offset_delete(group)
        if group is None or error != ErrorCode.NONE:
            respond(OffsetDeleteResponse(error_code=error, topics=[]))
            return
        wanted = [
            TopicPartition(topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
        in_use = group.state is not GroupState.EMPTY
        outcome = {
            key: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if in_use and group.is_subscribed_to(key.topic) else ErrorCode.NONE
            for key in wanted
        }
        deletable = [key for key, verdict in outcome.items() if verdict == ErrorCode.NONE]
        if deletable:
            self._groups.remove_offsets(group, group.offsets.remove(deletable))
        respond(offset_delete_response(outcome))

    @staticmethod
    def _validate_offset_delete(group: GroupMetadata | None) -> ErrorCode:
        if group is None or group.is_dead:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is GroupState.EMPTY or group.is_consumer_group:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    # -- administration --------------------------------------------------------------------------------------

    def describe_groups(
        self, context: GroupRequestContext, request: DescribeGroupsRequest, respond: Respond[DescribeGroupsResponse]
    ) -> None:
        described = []
        for group_id in request.groups:
            error = self._refusal(group_id, empty_id_allowed=True)
            if error == ErrorCode.NONE:
                described.append(describe_group(group_id, self._groups.get(group_id)))
            else:
                described.append(not_described(group_id, error))
        respond(DescribeGroupsResponse(groups=described))

    def list_groups(
        self, context: GroupRequestContext, request: ListGroupsRequest, respond: Respond[ListGroupsResponse]
    ) -> None:
        """All groups in memory, even while others are still being loaded (which the error says)."""
        response = ListGroupsResponse(error_code=ErrorCode.NONE, groups=[])
        if not self._is_active:
            response.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            if self._groups.ownership.is_anything_loading:
                response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            response.groups = [list_group(group) for group in self._groups.groups if matches_filters(group, request)]
        respond(response)

    def delete_groups(
        self, context: GroupRequestContext, request: DeleteGroupsRequest, respond: Respond[DeleteGroupsResponse]
    ) -> None:
        """Remove groups nobody is in, with their offsets (KIP-229)."""
        results = [
            DeletableGroupResult(group_id=group_id, error_code=self._delete_group(group_id))
            for group_id in dict.fromkeys(request.groups_names)
        ]
        respond(DeleteGroupsResponse(results=results))

    def _delete_group(self, group_id: str) -> ErrorCode:
        error = self._refusal(group_id, empty_id_allowed=True)
        if error != ErrorCode.NONE:
            return error
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = group.lifecycle.answer(GroupRequest.DELETE)
        if error == ErrorCode.NONE:
            self._groups.delete(group)
        return error

    # -- may this broker answer? -----------------------------------------------------------------------------

    def _refusal(self, group_id: str, *, empty_id_allowed: bool = False) -> ErrorCode:
        """Why this broker cannot answer for the group; NONE if it can.

        The empty id is a group like any other where offsets are concerned, because old consumers used it, and for
        those who want to look at it or delete it. Nobody can join it.
        """
        if not group_id and not empty_id_allowed:
            return ErrorCode.INVALID_GROUP_ID
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self._groups.is_loading(group_id):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not self._groups.is_local(group_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE
