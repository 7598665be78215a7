"""The epoch of the finalized features, as each broker answers it in ApiVersions.

Kafka: FinalizedFeatureChangeListener.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.features import UNKNOWN_EPOCH
from odradek.controller.znodes.znode_json import BadZnode

if TYPE_CHECKING:
    from odradek.controller.tree.metadata_tree import WatchEvent
    from odradek.controller.znodes.metadata_client import MetadataClient

logger = logging.getLogger("odradek.controller")


class FinalizedFeatureChangeListener:
    """Tells `update` the epoch of the finalized features, at the start and whenever `/feature` has changed.

    It is the version of the node; UNKNOWN_EPOCH if there is none, or it is disabled or malformed. While features are
    finalized, which no broker in ZooKeeper mode supports, the epoch stays as it was: Kafka stops the broker.

    Kafka: FinalizedFeatureChangeListener, ZkMetadataCache.updateFeaturesOrThrow.
    """

    def __init__(self, client: MetadataClient, update: Callable[[int], None]) -> None:
        self._client = client
        self._update = update
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the node, and listen from then on. Raises: TreeError."""
        self._client.tree.add_session_listener(self)
        await self._read()
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="changes of features")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def session_lost(self) -> None:
        """Implements SessionListener: the epoch stays."""

    def session_started(self) -> None:
        """Implements SessionListener: the watch is lost, so read the node again."""
        self._changed.set()

    def _on_watch(self, _: WatchEvent) -> None:
        self._changed.set()

    async def _listen(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._read()
            except TreeError as error:
                logger.error("Error while %s was read: %r", znodes.FEATURE, error)

    async def _read(self) -> None:
        await self._client.watch_existence(znodes.FEATURE, self._on_watch)
        node = await self._client.get(znodes.FEATURE)
        epoch = UNKNOWN_EPOCH
        if node is not None:
            try:
                status, levels = znodes.decode_feature(node.data)
            except BadZnode as error:
                logger.error("%s cannot be read: %s", znodes.FEATURE, error)
            else:
                if status == znodes.FEATURE_ENABLED and levels:
                    logger.error("%s finalizes features that no broker supports: %s", znodes.FEATURE, levels)
                    return
                epoch = node.stat.version if status == znodes.FEATURE_ENABLED else UNKNOWN_EPOCH
        self._update(epoch)
