"""Metadata (key 3), served: 0-12.

v0: an empty list means all topics, unreachable replicas are errors. v1: null means all topics; the controller's id. v4:
automatic creation can be declined. v5: offline replicas. v6: LISTENER_NOT_FOUND. v7: leader epochs. v8: authorized
operations. v10: topic ids in the response. v12: topics by id.

An unknown topic that may be created is created in the background. The response is LEADER_NOT_AVAILABLE meanwhile, on
which clients retry.

Kafka: KafkaApis.handleTopicMetadataRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.broker.apis.authorization import (
    EVERYTHING,
    authorize,
    authorized_operations,
    cluster_operations,
    filter_by_authorized,
)
from odradek.broker.apis.leaders import reachable_nodes
from odradek.broker.apis.services import in_slices
from odradek.controller.loop_turns import result_in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.model.broker_info import NO_CONTROLLER
from odradek.controller.model.topic_names import INTERNAL_TOPICS, is_valid_topic_name
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from odradek.timer.sliced_work import chosen, distinct, listed

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FIRST_TOPIC_ID_VERSION = 12


@in_slices
def handle(broker: Services, ctx: RequestContext, request: MetadataRequest) -> Steps:
    version = ctx.header.api_version
    all_topics = request.topics is None or (version == 0 and not request.topics)
    requested = () if request.topics is None else request.topics
    if not all_topics:
        yield from _check_version(requested, version)
    cache = broker.metadata_cache
    ids: dict[bytes, None] = {}
    if not all_topics:
        ids = yield from distinct(topic.topic_id for topic in requested)
        ids.pop(ZERO_UUID, None)
    by_id = bool(ids)
    answers: list[MetadataResponseTopic] = []
    if all_topics:
        names = list(cache.snapshot.partitions)
    elif by_id:
        names = []
        for topic_id in ids:
            yield None
            name = cache.topic_name(topic_id)
            if name is None:
                answers.append(
                    MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
                )
            else:
                names.append(name)
    else:
        different = yield from distinct(topic.name for topic in requested)
        if None in different:  # a topic without a name and without an id, which does not count beside an id
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        names = cast("list[str]", list(different))
        del different
    refused: list[MetadataResponseTopic] = []
    if broker.authorizer is not None:
        describe, kind = AclOperation.DESCRIBE, ResourceType.TOPIC
        describable = yield from filter_by_authorized(broker, ctx, describe, kind, names, log_if_denied=not all_topics)
        if not all_topics:
            hidden = yield from chosen(names, lambda name: name not in describable)
            refused = yield from listed(_undescribed(broker, name, by_id=by_id) for name in hidden)
        names = yield from chosen(names, describable.__contains__)
    found = yield from _known(broker, ctx, names)
    answers += found
    unknown: list[str] = []
    if len(found) < len(names):
        known = yield from distinct(topic.name for topic in found)
        missing = names if not known else (yield from chosen(names, lambda name: name not in known))
        may_create = broker.config.auto_create_topics_enable and request.allow_auto_topic_creation and not all_topics
        if may_create:
            creatable = yield from _creatable(broker, ctx, missing)
            uncreatable = yield from chosen(missing, lambda name: name not in creatable)
            unauthorized = yield from listed(_unauthorized(name) for name in uncreatable)
            refused = unauthorized + refused
            missing = yield from chosen(missing, creatable.__contains__)
        if may_create and missing:

            async def create() -> None:
                quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=None)
                answers.extend(await broker.topic_creator.create_automatically(missing, quota.record))
                ctx.reply(await result_in_turns(_response(broker, ctx, request, answers, refused)))

            broker.spawn(ctx, request, create())
            return
        unknown = missing
    response = yield from _response(broker, ctx, request, answers, refused, unknown)
    ctx.reply(response)


def _check_version(requested: Sequence[MetadataRequestTopic], version: int) -> Steps:
    """Raises: KafkaError if a topic has no name, or an id, in a version without ids."""
    if version >= FIRST_TOPIC_ID_VERSION:
        return
    for topic in requested:
        yield None
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}"
            )


def _undescribed(broker: Services, name: str, *, by_id: bool) -> MetadataResponseTopic:
    """The answer for a topic that the client may not describe, whether it exists or not. Only names are secret."""
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if by_id:
        return MetadataResponseTopic(error_code=error, name=None, topic_id=broker.metadata_cache.topic_id(name))
    return MetadataResponseTopic(error_code=error, name=name)


def _creatable(broker: Services, ctx: RequestContext, missing: list[str]) -> Generator[None, None, Container[str]]:
    """The missing topics that the client may create."""
    create = AclOperation.CREATE
    if authorize(broker, ctx, create, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        return EVERYTHING
    return (yield from filter_by_authorized(broker, ctx, create, ResourceType.TOPIC, missing))


def _unauthorized(name: str) -> MetadataResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _known(
    broker: Services, ctx: RequestContext, names: list[str]
) -> Generator[None, None, list[MetadataResponseTopic]]:
    existing = []
    for name in names:
        if broker.metadata_cache.contains(name):
            existing.append(name)
        yield
    found = []
    for topic in broker.metadata_cache.topic_metadata(
        existing,
        ctx.connection.listener_name,
        error_unavailable_endpoints=ctx.header.api_version == 0,
        error_unavailable_listeners=ctx.header.api_version >= 6,
    ):
        found.append(topic)
        yield
    return found


def _unknown(name: str) -> MetadataResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _response(
    broker: Services,
    ctx: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
    refused: list[MetadataResponseTopic],
    unknown: Sequence[str] = (),
) -> Generator[None, None, MetadataResponse]:
    """`unknown`: topics that come after `topics` and are not there. A request of 1 MB may name 150,000 of them."""
    version = ctx.header.api_version
    tells_operations = version >= 8 and request.include_topic_authorized_operations

    def with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
        if tells_operations and topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
            name = topic.name or ""
            topic.topic_authorized_operations = authorized_operations(broker, ctx, ResourceType.TOPIC, name)
        return topic

    def answer(topic: MetadataResponseTopic | str) -> MetadataResponseTopic:
        return with_operations(_unknown(topic)) if isinstance(topic, str) else topic

    if tells_operations:
        for topic in topics:
            yield
            with_operations(topic)
    answers: Sequence[MetadataResponseTopic] = topics + refused
    if unknown and not answers:
        answers = Mapped(answer, unknown)
    elif unknown:
        mixed: list[MetadataResponseTopic | str] = [*topics, *unknown, *refused]
        answers = Mapped(answer, mixed)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
            for node in reachable_nodes(broker, ctx)
        ],
        cluster_id=broker.cluster_id,
        controller_id=NO_CONTROLLER
        if broker.metadata_cache.snapshot.controller_id is None
        else broker.metadata_cache.snapshot.controller_id,
        topics=answers,
    )
    if 8 <= version <= 10 and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, ctx)
    return response


def error_response(
    request: MetadataRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, MetadataResponse]:
    topics = yield from listed(
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    )
    return MetadataResponse(topics=topics)
