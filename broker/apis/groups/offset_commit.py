"""OffsetCommit (key 8), served: 0-9.

v0 keeps offsets under /consumers in the metadata tree, later versions in ``__consumer_offsets``. v1: generation and
member id, commit time. v2-4: a retention time. v6: leader epochs. v7: static members. v9: the new consumer protocol's
errors.

Partitions that do not exist, or that the client may not read, are refused here; the coordinator gets the others.

Kafka: KafkaApis.handleOffsetCommitRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import EVERYTHING, filter_by_authorized, require
from odradek.broker.apis.existing_partitions import split_by_existence, with_outcome
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, now_or_in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.coordinator.group.offsets.offset_api import Outcome
    from odradek.timer.sliced_work import Steps


def handle(broker: Services, ctx: RequestContext, request: OffsetCommitRequest) -> None:
    work = _commit(broker, ctx, request)
    now_or_in_slices(broker, ctx, request, work, is_small=ctx.size <= SMALL_REQUEST_BYTES)


def _commit(broker: Services, ctx: RequestContext, request: OffsetCommitRequest) -> Steps:
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if request.group_instance_id is not None and not broker.config.metadata_version.has_static_membership:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    authorized: Container[str] = EVERYTHING
    if broker.authorizer is not None:
        names = (topic.name for topic in request.topics)
        authorized = yield from filter_by_authorized(broker, ctx, AclOperation.READ, ResourceType.TOPIC, names)
    existing, refused = yield from split_by_existence(broker, request.topics, authorized, _topic, _answered)

    def answer(outcome: Outcome) -> Steps:
        topics = yield from with_outcome(refused, outcome, _topic, _answered)
        ctx.reply(OffsetCommitResponse(topics=topics))

    def respond(outcome: Outcome) -> None:
        now_or_in_slices(broker, ctx, request, answer(outcome), is_small=ctx.size <= SMALL_REQUEST_BYTES)

    if not existing:
        yield from answer({})
        return
    request.topics = yield from listed(
        OffsetCommitRequestTopic(name=name, partitions=found) for name, found in existing
    )
    yield from broker.group_coordinator.commit_offsets(group_context(ctx), request, respond)


def _topic(name: str, refused: Sequence[OffsetCommitResponsePartition]) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(name=name, partitions=refused)


def _answered(index: int, error: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=error)


def error_response(
    request: OffsetCommitRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, OffsetCommitResponse]:
    topics = []
    for topic in request.topics:
        partitions = yield from listed(_answered(part.partition_index, code) for part in topic.partitions)
        topics.append(_topic(topic.name, partitions))
        yield
    return OffsetCommitResponse(topics=topics)
