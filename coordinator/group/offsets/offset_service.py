"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete.

Members commit in their generation; any client may commit to an Empty group. A fetch is served in every state, also for
a group that does not exist: the client may use the group only to store offsets.

Kafka: GroupCoordinator.handleCommitOffsets, GroupCoordinator.handleTxnCommitOffsets,
GroupCoordinator.handleFetchOffsets, GroupCoordinator.handleDeleteOffsets.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.group_metadata_manager import OFFSETS_A_STEP, GroupMetadataManager
from odradek.coordinator.group.members.sessions import MemberSessions
from odradek.coordinator.group.offsets.offset_api import (
    Outcome,
    fetched_offsets,
    offset_fetch_error,
    offset_fetch_response,
    offsets_to_commit,
    requested_groups,
    requested_partitions,
    transactional_offsets_to_commit,
)
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.group_states import GroupRequest, GroupState
from odradek.coordinator.group.state.responses import OFFSET_APPEND_ERRORS
from odradek.coordinator.group.validation import refusal_for, validate_offset_commit
from odradek.coordinator.ports import ConsumerOffsetTree, Respond, TransactionalProducer, TransactionVerifier
from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.records.layout import NO_PRODUCER_ID
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.sliced_work import Steps, chosen

FIRST_ABORTABLE_VERSION = 4
"""The first version of TxnOffsetCommit whose clients know TRANSACTION_ABORTABLE."""


class OffsetService:
    """Serves the four requests. Without a tree, version 0 (offsets in ZooKeeper) is not supported."""

    __slots__ = ("_clock", "_groups", "_sessions", "_tree", "_verify_transaction", "deleted_offsets")

    def __init__(
        self,
        groups: GroupMetadataManager,
        sessions: MemberSessions,
        clock: Clock,
        tree: ConsumerOffsetTree | None,
        verify_transaction: TransactionVerifier,
    ) -> None:
        self._groups = groups
        self._sessions = sessions
        self._clock = clock
        """Makes answers that had to wait for the tree."""
        self._tree = tree
        self._verify_transaction = verify_transaction
        self.deleted_offsets = 0
        """Offsets that OffsetDelete removed, since the start."""

    def commit(self, context: GroupRequestContext, request: OffsetCommitRequest, respond: Respond[Outcome]) -> Steps:
        """Encode the records in steps; then validate and append in one step, so that the group does not change between.

        Kafka: GroupCoordinator.doCommitOffsets.
        """
        offsets = yield from offsets_to_commit(request, self._clock.time_ms())
        if context.api_version == 0:
            yield from self._commit_to_tree(request.group_id, offsets, respond)
            return
        records = yield from self._groups.offset_records(request.group_id, offsets)
        generation_id = request.generation_id_or_member_epoch
        error = refusal_for(self._groups, request.group_id, empty_id_allowed=True)
        group: GroupMetadata | None = None
        if error == ErrorCode.NONE:
            group = self._groups.get(request.group_id)
            if group is None and generation_id < 0:
                # The client uses the group only to store offsets.
                group = self._groups.get_or_create(request.group_id)
            error = self._validate_commit(group, request)
        if group is None or error != ErrorCode.NONE:
            respond(dict.fromkeys(offsets, error))
            return
        if group.state is not GroupState.EMPTY:
            self._sessions.renew(group, group[request.member_id])
        self._groups.store_offsets(group, offsets, respond, records=records)

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
        self, group_id: str, offsets: dict[TopicPartition, OffsetAndMetadata], respond: Respond[Outcome]
    ) -> Steps:
        if self._tree is None:
            respond(dict.fromkeys(offsets, ErrorCode.UNSUPPORTED_VERSION))
            return
        too_long = yield from chosen(offsets, lambda key: not self._groups.fits(offsets[key].metadata))
        refused = dict.fromkeys(too_long, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        from odradek.coordinator.group.offsets.zookeeper_offsets import commit_to_tree  # rarely needed: not at start-up

        yield from commit_to_tree(self._tree, group_id, offsets, refused, respond)

    def commit_transactional(
        self, context: GroupRequestContext, request: TxnOffsetCommitRequest, respond: Respond[Outcome]
    ) -> Steps:
        """Append offsets that become the group's when the producer's transaction commits.

        First the transaction coordinator verifies that the group's partition belongs to the transaction.
        Kafka: GroupCoordinator.doTxnCommitOffsets.
        """
        offsets = yield from transactional_offsets_to_commit(request, self._clock.time_ms())
        records = yield from self._groups.offset_records(request.group_id, offsets)

        def refuse(error: ErrorCode) -> None:
            respond(dict.fromkeys(offsets, error))

        error = refusal_for(self._groups, request.group_id)
        if error != ErrorCode.NONE:
            refuse(error)
            return
        group = self._groups.get_or_create(request.group_id)

        def verified(error: ErrorCode, guard: object | None) -> None:
            error = OFFSET_APPEND_ERRORS.get(error, error)
            if error == ErrorCode.NONE:
                error = validate_offset_commit(
                    group, request.generation_id, request.member_id, request.group_instance_id, transactional=True
                )
            if error != ErrorCode.NONE:
                refuse(error)
                return
            producer = None  # as in Kafka, offsets of no producer are committed like those of a consumer
            if request.producer_id != NO_PRODUCER_ID:
                producer = TransactionalProducer(request.producer_id, request.producer_epoch, guard)
            self._groups.store_offsets(group, offsets, respond, producer, records=records)

        self._verify_transaction(
            self._groups.partition_for(request.group_id),
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            verified,
            knows_abortable_error=context.api_version >= FIRST_ABORTABLE_VERSION,
        )

    def fetch(
        self, context: GroupRequestContext, request: OffsetFetchRequest, respond: Respond[OffsetFetchResponse]
    ) -> Steps:
        version = context.api_version
        groups = requested_groups(request, version)
        if version == 0:
            yield from self._fetch_from_tree(groups[0], respond)
            return
        require_stable = version >= 7 and request.require_stable
        answers = Outcomes(_without_topics)
        of_all_topics: dict[str, OffsetFetchResponseGroup] = {}
        """A request may name one group with many offsets 100,000 times."""
        for group in groups:
            if group.topics is None and group.group_id in of_all_topics:
                answer = of_all_topics[group.group_id]
            else:
                answer = yield from self._fetch_group(group, version, require_stable=require_stable)
                if group.topics is None:
                    answer.topics = KeptArray(answer.topics)
                    of_all_topics[group.group_id] = answer
            if group.topics is None or answer.topics:
                answers.append(answer)
            else:
                answers.add(group.group_id, answer.error_code)
            yield None
        response = yield from offset_fetch_response(answers, version)
        respond(response)

    def _fetch_group(
        self, group: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> Generator[None, None, OffsetFetchResponseGroup]:
        """One group of an OffsetFetch of version 1 and later.

        The check and the look-up of the group are one step: without an error, a group that has moved away meanwhile
        would be one without offsets, and its consumers would start over.
        """
        partitions: list[TopicPartition] | None = None
        if group.topics is not None:
            partitions = yield from requested_partitions(group.topics)
        error = refusal_for(self._groups, group.group_id, empty_id_allowed=True)
        if error != ErrorCode.NONE:
            return (yield from offset_fetch_error(group, error, version))
        topics = yield from fetched_offsets(self._groups.get(group.group_id), partitions, require_stable=require_stable)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)

    def _fetch_from_tree(self, group: OffsetFetchRequestGroup, respond: Respond[OffsetFetchResponse]) -> Steps:
        if self._tree is None:
            failed = yield from offset_fetch_error(group, ErrorCode.UNSUPPORTED_VERSION, 0)
            response = yield from offset_fetch_response([failed], 0)
            respond(response)
        else:
            from odradek.coordinator.group.offsets.zookeeper_offsets import fetch_from_tree

            yield from fetch_from_tree(self._tree, group, respond)

    def delete(self, request: OffsetDeleteRequest, respond: Respond[OffsetDeleteResponse]) -> Steps:
        """Remove offsets of topics that no member subscribes to (KIP-496), in one step: the group does not change
        between the decision and the removal.
        """
        wanted: dict[TopicPartition, None] = {}
        for named in request.topics:
            for number, partition in enumerate(named.partitions, 1):
                wanted[TopicPartition(named.name, partition.partition_index)] = None
                if number % OFFSETS_A_STEP == 0:
                    yield None
            yield None
        error = refusal_for(self._groups, request.group_id)
        group = self._groups.get(request.group_id)
        if error == ErrorCode.NONE:
            error = self._validate_offset_delete(group)
        if group is None or error != ErrorCode.NONE:
            respond(OffsetDeleteResponse(error_code=error, topics=[]))
            return
        in_use = group.state is not GroupState.EMPTY
        outcome = {
            key: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if in_use and group.is_subscribed_to(key.topic) else ErrorCode.NONE
            for key in wanted
        }
        deletable = [key for key, verdict in outcome.items() if verdict == ErrorCode.NONE]
        if deletable:
            self.deleted_offsets += self._groups.remove_offsets(group, group.offsets.remove(deletable))
        found: dict[str, list[OffsetDeleteResponsePartition]] = {}
        for number, (key, error) in enumerate(outcome.items(), 1):
            answer = OffsetDeleteResponsePartition(partition_index=key.partition, error_code=error)
            found.setdefault(key.topic, []).append(answer)
            if number % OFFSETS_A_STEP == 0:
                yield None
        topics = [OffsetDeleteResponseTopic(name=name, partitions=some) for name, some in found.items()]
        respond(OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics))

    @staticmethod
    def _validate_offset_delete(group: GroupMetadata | None) -> ErrorCode:
        if group is None or group.is_dead:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is GroupState.EMPTY or group.is_consumer_group:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP


def _without_topics(group_id: str, error: int) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
