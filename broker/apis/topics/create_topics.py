"""CreateTopics (key 19), served: 0-7.

v1: validate_only, error messages. v4: -1 means the broker's default. v5: the topic's configs and counts in the
response. v7: its id. Only the active controller answers. When it reports a topic as created, the topic is usable.

Kafka: KafkaApis.handleCreateTopicsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import EVERYTHING, authorize, filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.admin.config_admin import describe_topic_configs
from odradek.controller.loop_turns import counted, in_turns, result_in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Container, Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.controller.admin.topic_admin import TopicResult

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
FIRST_CONFIGS_VERSION = 5
FIRST_STRICT_QUOTA_VERSION = 6


def handle(broker: Services, ctx: RequestContext, request: CreateTopicsRequest) -> None:
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    broker.spawn(ctx, request, _create(broker, ctx, request))


async def _create(broker: Services, ctx: RequestContext, request: CreateTopicsRequest) -> None:
    quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=FIRST_STRICT_QUOTA_VERSION)
    named = await counted(topic.name for topic in request.topics)
    names = [name async for name in in_turns(named) if name != CLUSTER_METADATA_TOPIC]
    creatable, describable = await _rights(broker, ctx, names)
    refused = {}
    async for name, count in in_turns(named.items()):
        refusal = _refusal(name, count, is_authorized=name in creatable)
        if refusal is not None:
            if name != CLUSTER_METADATA_TOPIC and name not in describable:
                refusal.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused[name] = refusal
    results = await broker.admin.create_topics(
        [topic async for topic in in_turns(request.topics) if topic.name not in refused],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
        record_mutations=quota.record,
    )
    topics = [
        refused[topic.name]
        if topic.name in refused
        else _result(broker, ctx, results[topic.name], tells_configs=topic.name in describable)
        async for topic in in_turns(request.topics)
    ]
    ctx.reply(CreateTopicsResponse(topics=topics, throttle_time_ms=throttle_mutation(broker.quotas, ctx, quota)))


async def _rights(broker: Services, ctx: RequestContext, names: list[str]) -> tuple[Container[str], Container[str]]:
    """The topics that the client may create, and those whose configs and counts it may get."""
    topic = ResourceType.TOPIC
    creatable: Container[str] = EVERYTHING
    if not authorize(broker, ctx, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        creatable = await result_in_turns(filter_by_authorized(broker, ctx, AclOperation.CREATE, topic, names))
    describe = AclOperation.DESCRIBE_CONFIGS
    asking = filter_by_authorized(broker, ctx, describe, topic, names, log_if_denied=False)
    return creatable, await result_in_turns(asking)


def _refusal(name: str, count: int, *, is_authorized: bool) -> CreatableTopicResult | None:
    error = ErrorCode.INVALID_REQUEST
    if name == CLUSTER_METADATA_TOPIC:
        message = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
    elif count > 1:
        message = "Found multiple entries for this topic."
    elif not is_authorized:
        error, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
    else:
        return None
    return CreatableTopicResult(name=name, error_code=error, error_message=message, configs=[])


def _result(broker: Services, ctx: RequestContext, result: TopicResult, *, tells_configs: bool) -> CreatableTopicResult:
    if not result.is_success:
        return CreatableTopicResult(
            name=result.name,
            # A topic whose leaders were not elected in time has one.
            topic_id=result.topic_id if tells_configs else ZERO_UUID,
            error_code=result.error_code,
            error_message=result.error_message,
            configs=[],
        )
    if not tells_configs:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(name=result.name, error_message=None, topic_config_error_code=error, configs=[])
    answer = CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )
    if ctx.header.api_version >= FIRST_CONFIGS_VERSION:
        answer.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic_configs(
                result.name, result.overrides, broker.config.settings, broker.config.synonyms
            )
        ]
    return answer


def error_response(
    request: CreateTopicsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, CreateTopicsResponse]:
    topics = yield from listed(
        CreatableTopicResult(name=topic.name, error_code=code, configs=[]) for topic in request.topics
    )
    return CreateTopicsResponse(topics=topics)
