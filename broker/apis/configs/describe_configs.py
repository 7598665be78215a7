"""DescribeConfigs (key 32), served: 0-4.

Null keys mean all. v0: is_default. v1: the source, and synonyms on request. v3: the type, and documentation on request.
Only the broker itself describes its configs; an empty broker name means the dynamic configs of all brokers.

Kafka: KafkaApis.handleDescribeConfigsRequest, ConfigHelper.describeConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import REFUSAL, authorize
from odradek.broker.apis.configs.config_entries import broker_configs, cluster_default_configs
from odradek.broker.apis.configs.runtime_loggers import logger_configs
from odradek.controller.admin.config_admin import describe_topic_configs
from odradek.controller.loop_turns import collected, in_turns
from odradek.controller.model import acls
from odradek.controller.model.config_codes import ResourceType
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


DESCRIBED = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def handle(broker: Services, ctx: RequestContext, request: DescribeConfigsRequest) -> None:
    broker.spawn(ctx, request, _describe_all(broker, ctx, request))


async def _describe_all(broker: Services, ctx: RequestContext, request: DescribeConfigsRequest) -> None:
    async for resource in in_turns(request.resources):
        if resource.resource_type not in DESCRIBED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
    results, refused = [], []
    async for resource in in_turns(request.resources):
        if (refusal := _refusal(broker, ctx, resource)) is not None:
            refused.append(refusal)
            continue
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            configs = await _describe(broker, resource)
        except KafkaError as error:
            result.error_code = error.code
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.error_message = error.specific_message
        else:
            wanted = await collected(resource.configuration_keys or ())
            result.configs = _select_requested(configs, wanted, request)
        results.append(result)
    ctx.reply(DescribeConfigsResponse(results=results + refused))


def _refusal(broker: Services, ctx: RequestContext, resource: DescribeConfigsResource) -> DescribeConfigsResult | None:
    """The answer for a resource whose configs the client may not get."""
    name, kind = resource.resource_name, acls.ResourceType.TOPIC
    if resource.resource_type != ResourceType.TOPIC:
        name, kind = acls.CLUSTER_NAME, acls.ResourceType.CLUSTER
    if authorize(broker, ctx, acls.AclOperation.DESCRIBE_CONFIGS, kind, name):
        return None
    return DescribeConfigsResult(
        error_code=REFUSAL[kind],
        error_message=DEFAULT_MESSAGES[REFUSAL[kind]],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def _describe(broker: Services, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    config, name = broker.config, resource.resource_name
    if resource.resource_type == ResourceType.CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters")
    if resource.resource_type == ResourceType.TOPIC:
        overrides = await broker.config_admin.topic_overrides(name)
        return describe_topic_configs(name, overrides, config.settings, config.synonyms)
    if resource.resource_type == ResourceType.BROKER:
        if not name:
            return cluster_default_configs(config, config.dynamic_defaults)
        _require_own_id(broker, name, "expected {} or empty string, but received {}")
        return broker_configs(config)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    _require_own_id(broker, name, "expected {} but received {}")
    return logger_configs(broker.logger_levels)


def _require_own_id(broker: Services, name: str, expectation: str) -> None:
    try:
        broker_id = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if broker_id != broker.broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, {expectation.format(broker.broker_id, name)}"
        )


def _select_requested(
    configs: list[DescribeConfigsResourceResult],
    wanted: Collection[str],
    request: DescribeConfigsRequest,
) -> list[DescribeConfigsResourceResult]:
    """The `wanted` keys, all if there are none. Fields that were not requested are cleared in place."""
    chosen = [config for config in configs if not wanted or config.name in wanted]
    for config in chosen:
        config.is_default = False  # Apache Kafka never sets is_default in a v0 response
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation:
            config.documentation = None
    return chosen
