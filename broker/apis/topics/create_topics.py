"""CreateTopics (key 19), served: 0-7.

v1: validate_only, error messages. v4: -1 means the broker's default. v5: the topic's configs and counts in the
response. v7: its id. Only the active controller answers. When it reports a topic as created, the topic is usable.

Kafka: KafkaApis.handleCreateTopicsRequest.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import EVERYTHING, authorize, filter_by_authorized
from odradek.broker.quotas.request_throttle import throttle_mutation
from odradek.controller.admin.config_admin import describe_topic_configs
from odradek.controller.loop_turns import in_turns, repeated_in_turns, result_in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Iterator, Set

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.controller.admin.topic_admin import TopicResult

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
FIRST_CONFIGS_VERSION = 5
FIRST_STRICT_QUOTA_VERSION = 6

_NAME: Final = attrgetter("name")

_PROHIBITED: Final = KafkaError(
    ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
)
_DUPLICATE: Final = KafkaError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
_UNAUTHORIZED: Final = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def handle(broker: Services, ctx: RequestContext, request: CreateTopicsRequest) -> None:
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    broker.spawn(ctx, request, _create(broker, ctx, request))


async def _create(broker: Services, ctx: RequestContext, request: CreateTopicsRequest) -> None:
    quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=FIRST_STRICT_QUOTA_VERSION)
    named_twice = await repeated_in_turns(Mapped(_NAME, request.topics))
    creatable, describable = await _rights(broker, ctx, request, named_twice)
    refused: dict[str, KafkaError] = {}
    async for topic in in_turns(request.topics):
        if topic.name == CLUSTER_METADATA_TOPIC:
            refused[topic.name] = _PROHIBITED
        elif topic.name in named_twice:
            refused[topic.name] = _DUPLICATE
        elif topic.name not in creatable:
            refused[topic.name] = _UNAUTHORIZED
    left = request.topics
    if refused:
        left = [topic async for topic in in_turns(request.topics) if topic.name not in refused]
    results = await broker.admin.create_topics(
        left, timeout_ms=request.timeout_ms, validate_only=request.validate_only, record_mutations=quota.record
    )

    def answer(topic: CreatableTopic) -> CreatableTopicResult:
        tells_configs = topic.name in describable
        if topic.name in refused:
            return _refused(topic.name, refused[topic.name], tells_configs=tells_configs)
        return _result(broker, ctx, results[topic.name], tells_configs=tells_configs)

    topics = Mapped(answer, request.topics)
    ctx.reply(CreateTopicsResponse(topics=topics, throttle_time_ms=throttle_mutation(broker.quotas, ctx, quota)))


async def _rights(
    broker: Services, ctx: RequestContext, request: CreateTopicsRequest, named_twice: Set[str]
) -> tuple[Container[str], Container[str]]:
    """The topics that the client may create, and those whose configs and counts it may get."""

    def names() -> Iterator[str]:
        """Each once."""
        once = (topic.name for topic in request.topics if topic.name not in named_twice)
        return (name for name in chain(once, named_twice) if name != CLUSTER_METADATA_TOPIC)

    topic = ResourceType.TOPIC
    creatable: Container[str] = EVERYTHING
    if not authorize(broker, ctx, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        creatable = await result_in_turns(filter_by_authorized(broker, ctx, AclOperation.CREATE, topic, names()))
    describe = AclOperation.DESCRIBE_CONFIGS
    asking = filter_by_authorized(broker, ctx, describe, topic, names(), log_if_denied=False)
    return creatable, await result_in_turns(asking)


def _refused(name: str, error: KafkaError, *, tells_configs: bool) -> CreatableTopicResult:
    refused = CreatableTopicResult(name=name, error_code=error.code, error_message=error.message, configs=[])
    if error is not _PROHIBITED and not tells_configs:
        refused.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return refused


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
    """Where the broker is not the controller, Kafka leaves its messages empty."""
    shown = "" if code == ErrorCode.NOT_CONTROLLER else message
    topics = yield from listed(
        CreatableTopicResult(name=topic.name, error_code=code, error_message=shown, configs=[])
        for topic in request.topics
    )
    return CreateTopicsResponse(topics=topics)
