"""AlterClientQuotas (key 49), served: 0-1. v1: flexible encoding.

Any broker writes the quotas; all brokers are notified. Each entity of a request succeeds or fails by itself.

Kafka: KafkaApis.handleAlterClientQuotasRequest.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import require
from odradek.controller.admin.client_quota_changes import QuotaChange, alter_client_quotas
from odradek.controller.admin.client_quotas import CLIENT_ID, IP, USER
from odradek.controller.loop_turns import ITEMS_A_TURN, in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.arrays.mapped import Zipped
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

LOGGED_ENTRIES: Final = 100
"""Of one request: 170,000 fit into a megabyte, and a line for each takes a second."""

logger = logging.getLogger(__name__)

_ORDER: Final = (CLIENT_ID, USER, IP)
"""The order of entity types in Apache Kafka's answers, which is that of a Java HashMap."""


def handle(broker: Services, ctx: RequestContext, request: AlterClientQuotasRequest) -> None:
    require(broker, ctx, AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterClientQuotasRequest) -> None:
    answers: dict[tuple[tuple[str, ...], tuple[str | None, ...]], ResponseEntryData] = {}
    """By the types and names of the entity. An object for each of 120,000 types, which 1 MB may name, has 10 MB."""
    refused = 0
    async for entry in in_turns(request.entries):
        entity = await _entity(entry)
        in_order: list[str] = [kind for kind in _ORDER if kind in entity]
        if len(in_order) < len(entity):
            in_order += [kind async for kind in in_turns(entity) if kind not in _ORDER]
        error = await _alter_one(broker, entity, entry, validate_only=request.validate_only)
        if error is not None:
            refused += 1
            if refused <= LOGGED_ENTRIES:
                logger.info("Error encountered while updating client quotas of %s: %s", _shown(entity), error)
        kinds, names = tuple(in_order), tuple(map(entity.get, in_order))
        answers[kinds, names] = ResponseEntryData(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.specific_message,
            entity=Zipped(_answered, kinds, names),
        )
    if refused > LOGGED_ENTRIES:
        logger.info("%d entries more of that request for client quotas are refused", refused - LOGGED_ENTRIES)
    ctx.reply(AlterClientQuotasResponse(entries=list(answers.values())))


async def _entity(entry: RequestEntryData) -> dict[str, str | None]:
    if len(entry.entity) <= ITEMS_A_TURN:
        return {part.entity_type: part.entity_name for part in entry.entity}
    return {part.entity_type: part.entity_name async for part in in_turns(entry.entity)}


def _answered(kind: str, name: str | None) -> EntityData:
    return EntityData(entity_type=kind, entity_name=name)


async def _alter_one(
    broker: Services, entity: dict[str, str | None], entry: RequestEntryData, *, validate_only: bool
) -> KafkaError | None:
    try:
        await alter_client_quotas(
            broker.controller.client,
            entity,
            (QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops),
            validate_only=validate_only,
            has_address=partial(_has_address, broker),
        )
    except KafkaError as error:
        return error.as_value()
    except (TreeError, BadZnode) as error:
        logger.error("Error encountered while updating client quotas of %s: %s", _shown(entity), error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


def _shown(entity: Mapping[str, str | None]) -> dict[str, str | None]:
    """For the log: a client may name as many types as fit into a request, but there are no more than these."""
    return dict(islice(entity.items(), len(_ORDER)))


async def _has_address(broker: Services, host: str) -> bool:
    """Whether the host can be resolved."""
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def done(result: str | OSError) -> None:
        if not answer.done():
            answer.set_result(isinstance(result, str))

    broker.host_addresses.resolve(host, done)
    return await answer
