"""DeleteTopics (key 20), served: 0-6.

v3: TOPIC_DELETION_DISABLED. v5: error messages. v6: topics by id. Only the active controller answers. When it reports a
topic as deleted, the topic is gone from this broker's metadata.

Kafka: KafkaApis.handleDeleteTopicsRequest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.loop_turns import in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped, Outcomes
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

FIRST_DISABLED_ERROR_VERSION = 3
FIRST_STRICT_QUOTA_VERSION = 5


def handle(broker: Services, ctx: RequestContext, request: DeleteTopicsRequest) -> None:
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if not broker.config.delete_topic_enable:
        disabled = ctx.header.api_version >= FIRST_DISABLED_ERROR_VERSION
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST)
    broker.spawn(ctx, request, _delete(broker, ctx, request))


async def _delete(broker: Services, ctx: RequestContext, request: DeleteTopicsRequest) -> None:
    quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=FIRST_STRICT_QUOTA_VERSION)
    names_by_id = await result_in_turns(_names_by_id(broker, request))
    results, to_delete = await result_in_turns(_judged(broker, ctx, request, names_by_id))
    if to_delete:
        outcomes = await broker.admin.delete_topics(
            to_delete, timeout_ms=request.timeout_ms, record_mutations=quota.record
        )
        async for name, outcome in in_turns(outcomes.items()):
            last = to_delete[name]
            topic_id = results[last].topic_id
            results.replace(last, DeletableTopicResult(name=name, topic_id=topic_id, error_code=outcome.error_code))
    ctx.reply(DeleteTopicsResponse(responses=results, throttle_time_ms=throttle_mutation(broker.quotas, ctx, quota)))


def _names_by_id(broker: Services, request: DeleteTopicsRequest) -> Generator[None, None, dict[bytes, str]]:
    """Of the topics that the controller knows; a topic that is being deleted has left the metadata cache before.

    Raises: KafkaError INVALID_REQUEST if a topic has an id and a name.
    """
    found: dict[bytes, str] = {}
    for topic in request.topics:
        if topic.topic_id != ZERO_UUID:
            if topic.name is not None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified.")
            name = broker.controller.topic_name(topic.topic_id)
            if name is not None:
                found[topic.topic_id] = name
        yield
    return found


def _judged(
    broker: Services, ctx: RequestContext, request: DeleteTopicsRequest, names_by_id: Mapping[bytes, str]
) -> Generator[None, None, tuple[Outcomes[str | DeleteTopicState, DeletableTopicResult], dict[str, int]]]:
    """What the request alone decides, and the topics to delete, each with the place of its last mention.

    Only that one tells what came of the deletion. A request of 1 MB may name 500,000 topics.
    """

    def name_of(topic: DeleteTopicState) -> str | None:
        return topic.name if topic.topic_id == ZERO_UUID else names_by_id.get(topic.topic_id)

    def names() -> Iterable[str]:
        if not request.topics:
            return request.topic_names
        return (name for name in map(name_of, request.topics) if name is not None)

    kind, cache = ResourceType.TOPIC, broker.metadata_cache
    describable = yield from filter_by_authorized(broker, ctx, AclOperation.DESCRIBE, kind, names())
    deletable = yield from filter_by_authorized(broker, ctx, AclOperation.DELETE, kind, names())
    results = Outcomes(_result)
    to_delete: dict[str, int] = {}

    def judge(name: str | None) -> ErrorCode:
        if name is None or name not in deletable:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if not cache.contains(name):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        to_delete[name] = len(results)
        return ErrorCode.NONE

    for topic_name in request.topic_names if not request.topics else ():
        results.add(topic_name, judge(topic_name))
        yield
    for topic in request.topics:
        name = name_of(topic)
        if topic.topic_id == ZERO_UUID:
            results.add(topic, judge(name))
        elif name is None:
            results.add(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        elif name not in describable:  # ids are no secret, names are
            results.add(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            results.append(DeletableTopicResult(name=name, topic_id=topic.topic_id, error_code=judge(name)))
        yield
    return results, to_delete


def _result(named: str | DeleteTopicState, code: int) -> DeletableTopicResult:
    if isinstance(named, str):
        return DeletableTopicResult(name=named, error_code=code)
    return DeletableTopicResult(name=named.name, topic_id=named.topic_id, error_code=code)


def error_response(
    request: DeleteTopicsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DeleteTopicsResponse]:
    """Kafka leaves its messages null."""
    yield
    named: Sequence[str | DeleteTopicState] = request.topics or request.topic_names
    return DeleteTopicsResponse(responses=Mapped(lambda topic: _result(topic, code), named))
