"""Where a broker's metadata tree comes from.

With `zookeeper.connect` it is that ZooKeeper's; else a SQLite file in `metadata.dir` that nobody else has open. Closing
the tree ends its session, and whatever it took to open it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.metadata_tree import MetadataTree

if TYPE_CHECKING:
    from odradek.broker.config import BrokerConfig
    from odradek.timer.clock import Clock

LAST_WORDS_TIMEOUT_S: Final = 3.0

OnFailure: TypeAlias = Callable[[BaseException], None]
"""Called when the tree has failed for good and the broker must stop."""

OpenTree: TypeAlias = "Callable[[BrokerConfig, Clock, OnFailure], Awaitable[MetadataTree]]"
"""How a broker gets its tree; raises StartupError or TreeError. Whoever gets the tree closes it."""


async def open_metadata_tree(config: BrokerConfig, clock: Clock, on_failure: OnFailure) -> MetadataTree:
    """The tree that the configuration asks for."""
    if config.uses_zookeeper:
        from odradek.broker.zookeeper_config import zookeeper_settings
        from odradek.controller.zookeeper_tree import ZooKeeperTree

        return await ZooKeeperTree.open(zookeeper_settings(config))
    os.makedirs(config.metadata_dir, exist_ok=True)
    return await EmbeddedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)


async def close_tree(tree: MetadataTree, last_words: Coroutine[object, object, None] | None = None) -> None:
    """Close the tree after the last words have been said, or when they take too long: then closing ends them.

    What is written into a ZooKeeper that is away waits for it to return.
    """
    if last_words is None:
        await tree.close()
        return
    saying = asyncio.ensure_future(last_words)
    await asyncio.wait({saying}, timeout=LAST_WORDS_TIMEOUT_S)
    await tree.close()
    await saying
