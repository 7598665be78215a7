"""CreatePartitions (key 37), served: 0-3. Only the active controller answers.

Kafka: KafkaApis.handleCreatePartitionsRequest.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.loop_turns import in_turns, repeated_in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped, Pairs
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
    from odradek.controller.admin.topic_admin import TopicResults

FIRST_STRICT_QUOTA_VERSION = 3

_NAME: Final = attrgetter("name")

_DUPLICATE: Final = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
_UNAUTHORIZED: Final = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
_QUEUED_FOR_DELETION: Final = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")


def handle(broker: Services, ctx: RequestContext, request: CreatePartitionsRequest) -> None:
    if broker.controller.is_active:
        broker.spawn(ctx, request, _create(broker, ctx, request))
    else:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)


async def _create(broker: Services, ctx: RequestContext, request: CreatePartitionsRequest) -> None:
    quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=FIRST_STRICT_QUOTA_VERSION)
    named_twice = await repeated_in_turns(Mapped(_NAME, request.topics))
    names = (topic.name for topic in request.topics if topic.name not in named_twice)
    asking = filter_by_authorized(broker, ctx, AclOperation.ALTER, ResourceType.TOPIC, names)
    authorized = await result_in_turns(asking)
    refused: dict[str, KafkaError] = {}
    async for topic in in_turns(request.topics):
        if topic.name in named_twice:
            refused[topic.name] = _DUPLICATE
        elif topic.name not in authorized:
            refused[topic.name] = _UNAUTHORIZED
        elif broker.controller.is_topic_queued_for_deletion(topic.name):
            refused[topic.name] = _QUEUED_FOR_DELETION
    left = request.topics
    if refused:
        left = [topic async for topic in in_turns(request.topics) if topic.name not in refused]
    outcomes = await broker.admin.create_partitions(
        left, timeout_ms=request.timeout_ms, validate_only=request.validate_only, record_mutations=quota.record
    )
    results = Pairs(_result)
    async for name, error in in_turns(refused.items()):
        results.add(name, error)
    async for name in in_turns(outcomes):
        results.add(name, outcomes)
    throttle_ms = throttle_mutation(broker.quotas, ctx, quota)
    ctx.reply(CreatePartitionsResponse(results=results, throttle_time_ms=throttle_ms))


def _result(name: str, outcome: KafkaError | TopicResults) -> CreatePartitionsTopicResult:
    """`outcome`: why the topic is refused, or the results of all that are not."""
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=outcome.message)
    result = outcome[name]
    return CreatePartitionsTopicResult(name=name, error_code=result.error_code, error_message=result.error_message)


def error_response(
    request: CreatePartitionsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, CreatePartitionsResponse]:
    names = yield from distinct(topic.name for topic in request.topics)
    results = yield from listed(
        CreatePartitionsTopicResult(name=name, error_code=code, error_message=None) for name in names
    )
    return CreatePartitionsResponse(results=results)
