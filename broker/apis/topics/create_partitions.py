"""CreatePartitions (key 37), served: 0-3. Only the active controller answers.

Kafka: KafkaApis.handleCreatePartitionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.loop_turns import counted, in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from odradek.timer.sliced_work import distinct, listed

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

FIRST_STRICT_QUOTA_VERSION = 3


def handle(broker: Services, ctx: RequestContext, request: CreatePartitionsRequest) -> None:
    if broker.controller.is_active:
        broker.spawn(ctx, request, _create(broker, ctx, request))
    else:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)


async def _create(broker: Services, ctx: RequestContext, request: CreatePartitionsRequest) -> None:
    quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=FIRST_STRICT_QUOTA_VERSION)
    counts = await counted(topic.name for topic in request.topics)
    names = [name async for name, count in in_turns(counts.items()) if count == 1]
    asking = filter_by_authorized(broker, ctx, AclOperation.ALTER, ResourceType.TOPIC, names)
    authorized = await result_in_turns(asking)
    results: dict[str, CreatePartitionsTopicResult] = {}
    async for name, count in in_turns(counts.items()):
        if count > 1:
            results[name] = _refused(name, ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        elif name not in authorized:
            message = "The topic authorization is failed."
            results[name] = _refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        elif broker.controller.is_topic_queued_for_deletion(name):
            results[name] = _refused(name, ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    outcomes = await broker.admin.create_partitions(
        [topic async for topic in in_turns(request.topics) if topic.name not in results],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
        record_mutations=quota.record,
    )
    async for name, outcome in in_turns(outcomes.items()):
        results[name] = _refused(name, outcome.error_code, outcome.error_message)
    throttle_ms = throttle_mutation(broker.quotas, ctx, quota)
    ctx.reply(CreatePartitionsResponse(results=list(results.values()), throttle_time_ms=throttle_ms))


def _refused(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def error_response(
    request: CreatePartitionsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, CreatePartitionsResponse]:
    names = yield from distinct(topic.name for topic in request.topics)
    results = yield from listed(_refused(name, code, None) for name in names)
    return CreatePartitionsResponse(results=results)
