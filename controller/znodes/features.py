"""The finalized features of the cluster (KIP-584), in `/feature`.

Brokers in ZooKeeper mode support no features, so every update that finalizes one is refused; but a feature that is in
the node already can be deleted.

Kafka: KafkaController.maybeSetupFeatureVersioning, KafkaController.processFeatureUpdates, FeatureZNode.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.loop_turns import in_turns
from odradek.controller.tree.metadata_tree import BadVersion, SessionExpired, SetData, TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import json_object
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.protocol.metadata_version import MetadataVersion

logger = logging.getLogger("odradek.controller")

UNKNOWN_EPOCH: Final = -1
"""Kafka: ApiVersionsResponse.UNKNOWN_FINALIZED_FEATURES_EPOCH."""

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


class FeatureUpdate(NamedTuple):
    """The level to finalize a feature at. A level below 1 deletes the feature, which is an error in an upgrade."""

    name: str
    level: int
    upgrade_type: int = UPGRADE


async def maybe_setup_feature_versioning(client: MetadataClient, metadata_version: MetadataVersion) -> None:
    """Write to `/feature` whether feature versioning is enabled. Finalized features stay if it was enabled before.

    With an inter-broker protocol before 2.7, versioning is disabled and the finalized features are deleted.
    Kafka: KafkaController.maybeSetupFeatureVersioning.
    """
    node = await client.get(znodes.FEATURE)
    status, levels = (znodes.FEATURE_DISABLED, {}) if node is None else znodes.decode_feature(node.data)
    has_features = metadata_version.has_features
    data = znodes.encode_feature(
        levels if has_features and status == znodes.FEATURE_ENABLED else {},
        version=metadata_version.feature_node_version,
        status=znodes.FEATURE_ENABLED if has_features else znodes.FEATURE_DISABLED,
    )
    if node is None:
        await client.create_recursive(znodes.FEATURE, data)
    elif json_object(node.data, znodes.FEATURE) != json_object(data, znodes.FEATURE):
        try:
            await client.tree.run(SetData(znodes.FEATURE, data, node.stat.version))
        except BadVersion:
            logger.warning("Not updating %s: another controller has changed it", znodes.FEATURE)


async def update_features(
    client: MetadataClient, updates: Sequence[FeatureUpdate], metadata_version: MetadataVersion
) -> dict[str, KafkaError | None]:
    """Apply the updates. Returns None or the error of each feature. Kafka: processFeatureUpdatesWithActiveController.

    Raises: KafkaError INVALID_REQUEST if the inter-broker protocol has no features.
    """
    if not metadata_version.has_features:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Feature versioning system is disabled.")
    node = await client.get(znodes.FEATURE)
    existing = {} if node is None else znodes.decode_feature(node.data)[1]
    results: dict[str, KafkaError | None] = {}
    errors: dict[str, KafkaError] = {}
    """By their messages, of which there are few: a request of 1 MB may name 100,000 features."""
    async for update in in_turns(updates):
        reason = validate_feature_update(update, existing.get(update.name))
        if reason is not None and reason not in errors:
            errors[reason] = KafkaError(ErrorCode.INVALID_REQUEST, reason)
        results.setdefault(update.name, None if reason is None else errors[reason])
    deleted = {name for name, error in results.items() if error is None}
    if deleted:
        kept = {name: level for name, level in existing.items() if name not in deleted}
        try:
            data = znodes.encode_feature(kept, version=metadata_version.feature_node_version)
            await client.tree.run(SetData(znodes.FEATURE, data))
        except SessionExpired:
            raise
        except TreeError as error:
            logger.warning("Processing of feature updates %s failed: %r", updates, error)
            results.update(dict.fromkeys(deleted, KafkaError(ErrorCode.FEATURE_UPDATE_FAILED)))
    return results


def validate_feature_update(update: FeatureUpdate, existing: int | None) -> str | None:
    """Why the update is refused, None if it is not. `existing`: the finalized level of the feature, if any.

    Kafka: KafkaController.validateFeatureUpdate.
    """
    _, level, upgrade_type = update
    if not update.name:
        return "Feature name can not be empty."
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "Received unknown upgrade type."
    if level < 1 and upgrade_type != UPGRADE:
        return "Can not delete non-existing finalized feature." if existing is None else None
    if level < 1:
        return (
            f"Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType in the request."
        )
    if existing is not None:
        if level == existing:
            verb = "downgrade" if upgrade_type == SAFE_DOWNGRADE else "upgrade"
            return f"Can not {verb} a finalized feature from existing versionLevel:{existing} to the same value."
        if level < existing and upgrade_type != SAFE_DOWNGRADE:
            return (
                f"Can not downgrade finalized feature from existing versionLevel:{existing} to provided "
                f"versionLevel:{level} without setting the downgradeType to SAFE in the request."
            )
        if level > existing and upgrade_type != UPGRADE:
            return (
                "When the downgradeType is set to SAFE in the request, the provided "
                f"versionLevel:{level} can not be greater than existing versionLevel:{existing}."
            )
    return "Could not apply finalized feature update because the provided feature is not supported."
