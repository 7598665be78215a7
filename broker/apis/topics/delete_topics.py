"""DeleteTopics (key 20), served: 0-6.

v3: TOPIC_DELETION_DISABLED. v5: error messages. v6: topics by id. Only the active controller answers. When it reports a
topic as deleted, the topic is gone from this broker's metadata.

Kafka: KafkaApis.handleDeleteTopicsRequest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.loop_turns import in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.protocol.shared_elements import shared
from odradek.timer.sliced_work import listed

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
    cache = broker.metadata_cache
    results: list[DeletableTopicResult] = []
    async for topic in in_turns(_topics(request)):
        by_id = topic.topic_id != ZERO_UUID
        if by_id and topic.name is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified.")
        name = cache.topic_name(topic.topic_id) if by_id else topic.name
        last = results[-1] if results else None
        if last is None or last.name != name or last.topic_id != topic.topic_id:
            last = DeletableTopicResult(name=name, topic_id=topic.topic_id)
        results.append(last)  # a request of 1 MB names one topic 500,000 times
    kind = ResourceType.TOPIC
    describable = await result_in_turns(filter_by_authorized(broker, ctx, AclOperation.DESCRIBE, kind, _names(results)))
    deletable = await result_in_turns(filter_by_authorized(broker, ctx, AclOperation.DELETE, kind, _names(results)))
    to_delete: dict[str, int] = {}
    """The place of the last mention in the results: only that one tells what came of it."""
    judged: DeletableTopicResult | None = None
    async for number, result in in_turns(enumerate(results)):
        name, by_id = result.name, result.topic_id != ZERO_UUID
        if result is judged:
            if name in to_delete and result.error_code == ErrorCode.NONE:
                to_delete[name] = number
            continue
        judged = result
        if by_id and name is None:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif by_id and name not in describable:
            # Ids are no secret, names are.
            result.name, result.error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name is None or name not in deletable:
            result.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not cache.contains(name):
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            to_delete[name] = number
    if to_delete:
        outcomes = await broker.admin.delete_topics(
            to_delete, timeout_ms=request.timeout_ms, record_mutations=quota.record
        )
        async for name, outcome in in_turns(outcomes.items()):
            number = to_delete[name]
            results[number] = DeletableTopicResult(
                name=name, topic_id=results[number].topic_id, error_code=outcome.error_code
            )
    ctx.reply(DeleteTopicsResponse(responses=results, throttle_time_ms=throttle_mutation(broker.quotas, ctx, quota)))


def _topics(request: DeleteTopicsRequest) -> Iterable[DeleteTopicState]:
    return request.topics or (DeleteTopicState(name=name) for name in request.topic_names)


def _names(results: Iterable[DeletableTopicResult]) -> Iterable[str]:
    return (result.name for result in results if result.name is not None)


def error_response(
    request: DeleteTopicsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DeleteTopicsResponse]:
    responses = yield from listed(
        shared(
            DeletableTopicResult(
                name=topic.name if version >= 6 else topic.name or "", topic_id=topic.topic_id, error_code=code
            )
            for topic in _topics(request)
        )
    )
    return DeleteTopicsResponse(responses=responses)
