"""TxnOffsetCommit (key 28), served: 0-4.

The offsets become the group's when the producer's transaction commits. v2: leader epochs, and the client knows
COORDINATOR_LOAD_IN_PROGRESS. v3: the member and generation that commit (KIP-447). v4: TRANSACTION_ABORTABLE.

Partitions that do not exist, or that the client may not read, are refused here; the coordinator gets the others.

Kafka: KafkaApis.handleTxnOffsetCommitRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized, require
from odradek.broker.apis.existing_partitions import split_by_existence, with_outcome
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, in_slices, now_or_in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.coordinator.group.offsets.offset_api import Outcome
    from odradek.timer.sliced_work import Steps

FIRST_LOADING_VERSION = 2


@in_slices
def handle(broker: Services, ctx: RequestContext, request: TxnOffsetCommitRequest) -> Steps:
    require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.READ, ResourceType.TOPIC, names)
    answered = _answered if ctx.header.api_version >= FIRST_LOADING_VERSION else _answered_without_loading
    existing, refused = yield from split_by_existence(broker, request.topics, authorized, _topic, answered)

    def answer(outcome: Outcome) -> Steps:
        topics = yield from with_outcome(refused, outcome, _topic, answered)
        ctx.reply(TxnOffsetCommitResponse(topics=topics))

    def respond(outcome: Outcome) -> None:
        now_or_in_slices(broker, ctx, request, answer(outcome), is_small=ctx.size <= SMALL_REQUEST_BYTES)

    if not existing:
        yield from answer({})
        return
    request.topics = yield from listed(
        TxnOffsetCommitRequestTopic(name=name, partitions=found) for name, found in existing
    )
    yield from broker.group_coordinator.commit_transactional_offsets(group_context(ctx), request, respond)


def _answered(index: int, error: int) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)


def _answered_without_loading(index: int, error: int) -> TxnOffsetCommitResponsePartition:
    """Without COORDINATOR_LOAD_IN_PROGRESS, on which producers before 2.0 may crash (KAFKA-7296)."""
    is_loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _answered(index, ErrorCode.COORDINATOR_NOT_AVAILABLE if is_loading else error)


def _topic(name: str, refused: Sequence[TxnOffsetCommitResponsePartition]) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(name=name, partitions=refused)
