"""UpdateFeatures (key 57), served: 0-1. Only the active controller answers; v1: the kind of a downgrade.

In ZooKeeper mode there are no features to finalise (`controller.znodes.features`), and validate_only is ignored.

Kafka: KafkaApis.handleUpdateFeatures.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.znodes.features import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from odradek.protocol.codec.arrays.mapped import Mapped, Pairs
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from odradek.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: UpdateFeaturesRequest) -> None:
    if not authorize(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ctx.reply(UpdateFeaturesResponse(error_code=error, error_message=DEFAULT_MESSAGES[error]))
        return
    broker.spawn(ctx, request, _update(broker, ctx, request))


async def _update(broker: Services, ctx: RequestContext, request: UpdateFeaturesRequest) -> None:
    updates = Mapped(partial(_update_of, ctx.header.api_version), request.feature_updates)
    found = await broker.controller.update_features(updates)
    results = Pairs(_result)
    async for name, refusal in in_turns(found.items()):
        results.add(name, refusal)
    ctx.reply(UpdateFeaturesResponse(error_message=None, results=results))


def _result(name: str, error: KafkaError | None) -> UpdatableFeatureResult:
    return UpdatableFeatureResult(
        feature=name,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message="NONE" if error is None else error.message,
    )


def _update_of(version: int, asked: FeatureUpdateKey) -> FeatureUpdate:
    upgrade_type = asked.upgrade_type if version >= 1 else SAFE_DOWNGRADE if asked.allow_downgrade else UPGRADE
    return FeatureUpdate(asked.feature, asked.max_version_level, upgrade_type)
