"""The epoch of the finalized features, as each broker answers it in ApiVersions.

Kafka: FinalizedFeatureChangeListener.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.controller.admin.node_changes import ChangeListener
from odradek.controller.znodes import znodes
from odradek.controller.znodes.features import UNKNOWN_EPOCH
from odradek.controller.znodes.znode_json import BadZnode

if TYPE_CHECKING:
    from odradek.controller.tree.metadata_tree import DataAndStat
    from odradek.controller.znodes.metadata_client import MetadataClient

logger = logging.getLogger("odradek.controller")


class FinalizedFeatureChangeListener(ChangeListener):
    """Tells `update` the epoch of the finalized features, at the start and whenever `/feature` has changed.

    It is the version of the node; UNKNOWN_EPOCH if there is none, or it is disabled or malformed. While features are
    finalized, which no broker in ZooKeeper mode supports, the epoch stays as it was: Kafka stops the broker.

    Kafka: FinalizedFeatureChangeListener, ZkMetadataCache.updateFeaturesOrThrow.
    """

    def __init__(self, client: MetadataClient, update: Callable[[int], None]) -> None:
        super().__init__(client, znodes.FEATURE)
        self._update = update

    async def start(self) -> None:
        """Read the node, and listen from then on. Raises: TreeError."""
        await self._read()
        self.listen()

    async def _read(self) -> None:
        await self._client.watch_existence(znodes.FEATURE, self._on_watch)
        node = await self._client.get(znodes.FEATURE)
        epoch = UNKNOWN_EPOCH if node is None else _epoch_of(node)
        if epoch is not None:
            self._update(epoch)


def _epoch_of(node: DataAndStat) -> int | None:
    """None if it stays as it was."""
    try:
        status, levels = znodes.decode_feature(node.data)
    except BadZnode as error:
        logger.error("%s cannot be read: %s", znodes.FEATURE, error)
        return UNKNOWN_EPOCH
    if status != znodes.FEATURE_ENABLED:
        return UNKNOWN_EPOCH
    if levels:
        logger.error("%s finalizes features that no broker supports: %s", znodes.FEATURE, levels)
        return None
    return node.stat.version
