"""DescribeClientQuotas (key 48), served: 0-1. v1: flexible encoding.

Reads the quotas in the metadata, which brokers of Apache Kafka may have written. They are not enforced here yet.

Kafka: KafkaApis.handleDescribeClientQuotasRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import require
from odradek.controller.admin.client_quotas import FilterComponent, MatchType, describe_client_quotas
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

MATCH_TYPES: Final = frozenset(MatchType)


def handle(broker: Services, ctx: RequestContext, request: DescribeClientQuotasRequest) -> None:
    require(broker, ctx, AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
    broker.spawn(ctx, request, _describe(broker, ctx, request))


async def _describe(broker: Services, ctx: RequestContext, request: DescribeClientQuotasRequest) -> None:
    async for asked in in_turns(request.components):
        _check(asked)
    # Only the first components are read: each must have a type of its own.
    components = map(_component, request.components)
    found = await describe_client_quotas(broker.controller.client, components, strict=request.strict)
    ctx.reply(
        DescribeClientQuotasResponse(
            error_message="",
            entries=[
                EntryData(
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entry.entity.items()],
                    values=[ValueData(key=key, value=value) for key, value in entry.quotas.items()],
                )
                async for entry in in_turns(found)
            ],
        )
    )


def _check(asked: ComponentData) -> None:
    if asked.match_type not in MATCH_TYPES or (asked.match_type == MatchType.EXACT and asked.match is None):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Apache Kafka raises an exception


def _component(asked: ComponentData) -> FilterComponent:
    return FilterComponent(asked.entity_type, MatchType(asked.match_type), asked.match)


def error_response(
    request: DescribeClientQuotasRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DescribeClientQuotasResponse]:
    yield
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
