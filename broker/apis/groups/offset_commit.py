"""OffsetCommit (key 8), served: 0-9.

v0 keeps offsets under /consumers in the metadata tree, later versions in ``__consumer_offsets``. v1: generation and
member id, commit time. v2-4: a retention time. v6: leader epochs. v7: static members. v9: the new consumer protocol's
errors.

Partitions that do not exist, or that the client may not read, are refused here; the coordinator gets the others.

Kafka: KafkaApis.handleOffsetCommitRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import EVERYTHING, filter_by_authorized, require
from odradek.broker.apis.existing_partitions import split_by_existence, with_outcome
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, now_or_in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.shape import Each, Shape
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import response_frame
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


WITHOUT_ERRORS: Final = Shape(
    OffsetCommitResponse,
    "topics",
    {
        "topics": Each(
            "name, indexes",
            "topics.items()",
            {"name": "name", "partitions": Each("index", "indexes", {"partition_index": "index"})},
        )
    },
)
"""The answer when no partition has an error: the indexes of each topic."""


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
        if refused is None and ctx.takes_bytes and not any(outcome.values()):
            _reply_without_errors(ctx, outcome)
            return
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


def _reply_without_errors(ctx: RequestContext, outcome: Outcome) -> None:
    """The frequent answer, when nobody looks at the response."""
    topics: dict[str, list[int]] = {}
    for name, index in outcome:
        indexes = topics.get(name)
        if indexes is None:
            topics[name] = [index]
        else:
            indexes.append(index)
    if ctx.counter is not None:
        ctx.counter.plain += 1
        ctx.counter.plain_codes += len(outcome) - 1
        ctx.counter = None
    header = ctx.header
    version = header.api_version
    pieces: list[bytes] = []
    WITHOUT_ERRORS.encoder(version)(topics, pieces)
    ctx.reply_bytes(response_frame(header.api_key, version, header.correlation_id, pieces))


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
