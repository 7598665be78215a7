"""Where a broker's metadata tree comes from.

With `zookeeper.connect` it is that ZooKeeper's; else a SQLite file in `metadata.dir` that nobody else has open. Closing
the tree ends its session, and whatever it took to open it.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.tree.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.tree.metadata_tree import MetadataTree

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timer.clock import Clock

LAST_WORDS_TIMEOUT_S: Final = 3.0
"""For what the controller is at when the broker stops, though the tree answers."""

AWAY_TIMEOUT_S: Final = 1.5

LOOK_EVERY_S: Final = 0.1
"""So often a stop looks whether the tree is away."""

OnFailure: TypeAlias = Callable[[BaseException], None]
"""Called when the tree has failed for good and the broker must stop."""

OpenTree: TypeAlias = "Callable[[BrokerConfig, Clock, OnFailure], Awaitable[MetadataTree]]"
"""How a broker gets its tree; raises StartupError or TreeError. Whoever gets the tree closes it."""


async def open_metadata_tree(config: BrokerConfig, clock: Clock, on_failure: OnFailure) -> MetadataTree:
    """The tree that the configuration asks for."""
    if config.uses_zookeeper:
        from odradek.broker.config.zookeeper_config import zookeeper_settings
        from odradek.controller.tree.zookeeper_tree import ZooKeeperTree

        return await ZooKeeperTree.open(zookeeper_settings(config))
    os.makedirs(config.metadata_dir, exist_ok=True)
    return await EmbeddedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)


class Patience:
    """How long a stop waits for a tree that is away: `AWAY_TIMEOUT_S` in all, for whatever it waits meanwhile.

    What is written into a ZooKeeper that is away waits for it to return, and so does everybody who waits for that, in
    this broker or another. A cluster is often stopped together with its ZooKeeper.
    """

    def __init__(self, tree: MetadataTree) -> None:
        self._tree = tree
        self._left_s = AWAY_TIMEOUT_S

    async def wait(self, work: asyncio.Future[None], timeout_s: float = math.inf) -> bool:
        """Whether the work was done before the patience, or the time, was over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while not work.done() and self._left_s > 0 and (now := loop.time()) < deadline:
            await asyncio.wait({work}, timeout=min(LOOK_EVERY_S, deadline - now))
            if self._tree.is_away:
                self._left_s -= loop.time() - now
        return work.done()


async def close_tree(
    tree: MetadataTree, patience: Patience, last_words: Coroutine[object, object, None] | None = None
) -> None:
    """Close the tree after the last words have been said, or when they take too long: then closing ends them."""
    if last_words is None:
        await tree.close()
        return
    saying = asyncio.ensure_future(last_words)
    await patience.wait(saying, LAST_WORDS_TIMEOUT_S)
    await tree.close()
    await saying
