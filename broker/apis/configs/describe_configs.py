"""DescribeConfigs (key 32), served: 0-4.

Null keys mean all. v0: is_default. v1: the source, and synonyms on request. v3: the type, and documentation on request.
Only the broker itself describes its configs; an empty broker name means the dynamic configs of all brokers.

Kafka: KafkaApis.handleDescribeConfigsRequest, ConfigHelper.describeConfigs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import REFUSAL, authorize
from odradek.broker.apis.configs.config_entries import broker_configs, cluster_default_configs
from odradek.broker.apis.configs.runtime_loggers import DYNAMIC_BROKER_LOGGER_CONFIG, logger_configs
from odradek.controller.admin.config_admin import describe_topic_configs
from odradek.controller.loop_turns import collected, in_turns
from odradek.controller.model import acls
from odradek.controller.model.config_codes import ResourceType
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.codec.arrays.mapped import Pairs, Zipped
from odradek.protocol.error_patterns import ErrorPattern, ErrorPatterns, error_about
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.storage.config.config_def import parse_int32

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


logger = logging.getLogger(__name__)

LOGGED_RESOURCES: Final = 100
"""Of one request. While the metadata tree cannot be read, each of 100,000 topics would have its line."""

DESCRIBED = frozenset(ResourceType) - {ResourceType.UNKNOWN}

_Outcome: TypeAlias = DescribeConfigsResult | KafkaError | ErrorPattern | ErrorCode
"""The code alone: the client has not the right to know."""

_UNEXPECTED: Final = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
_UNKNOWN_TOPIC: Final = ErrorPattern(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
"""A request of 1 MB may name 100,000 of them."""


def handle(broker: Services, ctx: RequestContext, request: DescribeConfigsRequest) -> None:
    broker.spawn(ctx, request, _describe_all(broker, ctx, request))


async def _describe_all(broker: Services, ctx: RequestContext, request: DescribeConfigsRequest) -> None:
    async for resource in in_turns(request.resources):
        if resource.resource_type not in DESCRIBED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
    outcomes: list[_Outcome] = []
    refused = failed = 0
    described, patterns = _Described(broker, request), ErrorPatterns()
    async for resource in in_turns(request.resources):
        if (refusal := _refusal(broker, ctx, resource)) is not None:
            outcomes.append(refusal)
            refused += 1
            continue
        try:
            outcomes.append(await described.result(resource))
        except (TreeError, BadZnode) as error:
            failed += 1
            if failed <= LOGGED_RESOURCES:
                logger.error("Error processing describe configs request for %s: %r", resource.resource_name, error)
            outcomes.append(_UNEXPECTED)
        except KafkaError as error:
            is_unknown = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            outcomes.append(_UNKNOWN_TOPIC if is_unknown else patterns.kept(error, resource.resource_name))
    results: Sequence[DescribeConfigsResult] = Zipped(_result, request.resources, outcomes)
    if 0 < refused < len(outcomes):
        results = await _refused_last(request.resources, outcomes)
    ctx.reply(DescribeConfigsResponse(results=results))


async def _refused_last(
    resources: Sequence[DescribeConfigsResource], outcomes: Sequence[_Outcome]
) -> Sequence[DescribeConfigsResult]:
    results, refused = Pairs(_result), Pairs(_result)
    async for resource, outcome in in_turns(zip(resources, outcomes, strict=True)):
        (refused if isinstance(outcome, ErrorCode) else results).add(resource, outcome)
    results.extend(refused)
    return results


def _result(resource: DescribeConfigsResource, outcome: _Outcome) -> DescribeConfigsResult:
    if isinstance(outcome, DescribeConfigsResult):
        return outcome
    message: str | None
    if outcome is _UNKNOWN_TOPIC:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""
    elif isinstance(outcome, ErrorCode):
        code, message = outcome, DEFAULT_MESSAGES[outcome]
    else:
        error = error_about(resource.resource_name, outcome)
        code, message = error.code, error.specific_message
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=code,
        error_message=message,
    )


class _Described:
    """The results of one request, which may name one resource 100,000 times: described once, and encoded once for each
    choice of keys.
    """

    def __init__(self, broker: Services, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._request = request
        self._all: dict[tuple[int, str], list[DescribeConfigsResourceResult]] = {}
        self._chosen: dict[tuple[int, str, frozenset[str]], KeptArray[DescribeConfigsResourceResult]] = {}
        self._results: dict[tuple[int, str, frozenset[str]], DescribeConfigsResult] = {}
        """By the name in the request, which a result repeats: `00` is not `0` here."""

    async def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        """The requested configs of one resource; the same object for the same request. Raises: KafkaError."""
        target = _target(self._broker, resource)
        kind, name = resource.resource_type, resource.resource_name
        keys = await collected(resource.configuration_keys or ())
        result = self._results.get((kind, name, keys))
        if result is None:
            configs = await self._configs(target, keys)
            result = DescribeConfigsResult(resource_type=kind, resource_name=name, configs=configs)
            self._results[kind, name, keys] = result
        return result

    async def _configs(self, target: tuple[int, str], keys: frozenset[str]) -> KeptArray[DescribeConfigsResourceResult]:
        found = self._chosen.get((*target, keys))
        if found is None:
            configs = self._all.get(target)
            if configs is None:
                configs = self._all[target] = await _describe(self._broker, *target)
            found = self._chosen[(*target, keys)] = KeptArray(_select_requested(configs, keys, self._request))
        return found


def _refusal(broker: Services, ctx: RequestContext, resource: DescribeConfigsResource) -> ErrorCode | None:
    """The error of a resource whose configs the client may not get."""
    name, kind = resource.resource_name, acls.ResourceType.TOPIC
    if resource.resource_type != ResourceType.TOPIC:
        name, kind = acls.CLUSTER_NAME, acls.ResourceType.CLUSTER
    if authorize(broker, ctx, acls.AclOperation.DESCRIBE_CONFIGS, kind, name):
        return None
    return REFUSAL[kind]


def _target(broker: Services, resource: DescribeConfigsResource) -> tuple[int, str]:
    """The type and the name of what is described: `00` is the broker 0, too. Raises: KafkaError."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters")
    if kind == ResourceType.TOPIC or (kind == ResourceType.BROKER and not name):
        return kind, name
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    is_broker = kind == ResourceType.BROKER
    _require_own_id(broker, name, f"expected {{}}{' or empty string,' if is_broker else ''} but received {{}}")
    return kind, str(broker.broker_id)


async def _describe(broker: Services, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    config = broker.config
    if kind == ResourceType.TOPIC:
        overrides = await broker.config_admin.topic_overrides(name)
        return describe_topic_configs(name, overrides, config.settings, config.synonyms)
    if kind == ResourceType.BROKER:
        return broker_configs(config) if name else cluster_default_configs(config, config.dynamic_defaults)
    return logger_configs(broker.logger_levels)


def _require_own_id(broker: Services, name: str, expectation: str) -> None:
    broker_id = parse_int32(name)
    if broker_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
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
        if not request.include_documentation and config.config_source != DYNAMIC_BROKER_LOGGER_CONFIG:
            config.documentation = None
    return chosen
