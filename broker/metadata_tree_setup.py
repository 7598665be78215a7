"""Where a broker's metadata tree comes from.

With embedded metadata it is a SQLite file in `metadata.dir` that nobody else has open. Closing the tree ends its
session, and whatever it took to open it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from odradek.broker.startup_error import StartupError
from odradek.controller.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.metadata_tree import MetadataTree

if TYPE_CHECKING:
    from odradek.broker.config import BrokerConfig
    from odradek.timer.clock import Clock

OnFailure: TypeAlias = Callable[[BaseException], None]
"""Called when the tree has failed for good and the broker must stop."""

OpenTree: TypeAlias = "Callable[[BrokerConfig, Clock, OnFailure], Awaitable[MetadataTree]]"
"""How a broker gets its tree; raises StartupError or TreeError. Whoever gets the tree closes it."""


async def open_metadata_tree(config: BrokerConfig, clock: Clock, on_failure: OnFailure) -> MetadataTree:
    """The tree that the configuration asks for."""
    if config.uses_zookeeper:
        raise StartupError(
            "zookeeper.connect is set, but joining a ZooKeeper cluster is not supported yet: leave it out for one "
            "node that keeps its metadata itself."
        )
    os.makedirs(config.metadata_dir, exist_ok=True)
    return await EmbeddedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)
