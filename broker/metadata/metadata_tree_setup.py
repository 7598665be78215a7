"""Opens and closes a broker's metadata tree.

With `zookeeper.connect` the tree is in that ZooKeeper; otherwise in a SQLite file in `metadata.dir`, which only this
process may open, and only the owner may read. Closing the tree ends its session.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.config.keys.general import ACL_AUTHORIZER
from odradek.broker.config.keys.zookeeper import ACL_ZOOKEEPER_KEYS
from odradek.controller.tree.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.tree.metadata_tree import MetadataTree

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timer.clock import Clock

FINAL_WRITES_TIMEOUT_S: Final = 3.0
"""Limit for the controller's last writes when the broker stops, while the tree is available."""

AWAY_TIMEOUT_S: Final = 1.5
"""Limit for all waits of a stop while the tree is not available."""

CHECK_INTERVAL_S: Final = 0.1
"""Interval at which a stop checks whether the tree is available."""

OnFailure: TypeAlias = Callable[[BaseException], None]
"""Called when the tree has failed permanently and the broker must stop."""

OpenTree: TypeAlias = "Callable[[BrokerConfig, Clock, OnFailure], Awaitable[MetadataTree]]"
"""Opens a broker's tree; raises StartupError or TreeError. The caller closes the tree."""


async def open_metadata_tree(config: BrokerConfig, clock: Clock, on_failure: OnFailure) -> MetadataTree:
    """Open the tree that the configuration names."""
    if config.uses_zookeeper:
        from odradek.broker.config.zookeeper_config import zookeeper_settings
        from odradek.broker.security.sasl.zookeeper_login import zookeeper_sasl
        from odradek.controller.tree.zookeeper_tree import ZooKeeperTree

        return await ZooKeeperTree.open(zookeeper_settings(config, zookeeper_sasl(config)))
    # A log directory gets the usual mode, as in Apache Kafka; the database in it is private all the same.
    is_log_dir = config.metadata_dir in config.log_dirs
    os.makedirs(config.metadata_dir, 0o777 if is_log_dir else 0o700, exist_ok=True)
    return await EmbeddedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)


async def open_acl_tree(config: BrokerConfig) -> MetadataTree | None:
    """Open the ZooKeeper that only AclAuthorizer uses; None: ACLs are in the metadata tree.

    Raises: StartupError, TreeError. The caller closes the tree.
    """
    if config.authorizer_class_name != ACL_AUTHORIZER or not ACL_ZOOKEEPER_KEYS & config.settings.keys():
        return None
    from odradek.broker.config.zookeeper_config import authorizer_zookeeper_settings
    from odradek.broker.security.sasl.zookeeper_login import zookeeper_sasl
    from odradek.controller.tree.zookeeper_tree import ZooKeeperTree

    settings = authorizer_zookeeper_settings(config, zookeeper_sasl(config))
    return None if settings is None else await ZooKeeperTree.open(settings)


class WaitLimit:
    """Limits the waits of a stop while the tree is not available: `AWAY_TIMEOUT_S` in all.

    A write into an unavailable ZooKeeper waits for its return, and so does everything that waits for the write, in this
    broker or another. A cluster is often stopped together with its ZooKeeper.
    """

    def __init__(self, tree: MetadataTree) -> None:
        self._tree = tree
        self._left_s = AWAY_TIMEOUT_S

    async def wait(self, work: asyncio.Future[None], timeout_s: float = math.inf) -> bool:
        """Wait for `work`, at most `timeout_s` or until the limit is used up; True if it is done."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while not work.done() and self._left_s > 0 and (now := loop.time()) < deadline:
            await asyncio.wait({work}, timeout=min(CHECK_INTERVAL_S, deadline - now))
            if self._tree.is_disconnected:
                self._left_s -= loop.time() - now
        return work.done()


async def close_tree(
    tree: MetadataTree, wait_limit: WaitLimit, final_writes: Coroutine[object, object, None] | None = None
) -> None:
    """Close the tree after `final_writes`, or after their time limit: then closing ends them with an error."""
    if final_writes is None:
        await tree.close()
        return
    writing = asyncio.ensure_future(final_writes)
    await wait_limit.wait(writing, FINAL_WRITES_TIMEOUT_S)
    await tree.close()
    await writing
