"""Where a broker's metadata tree comes from.

With `zookeeper.connect` it is that ZooKeeper's; else a SQLite file in `metadata.dir` that nobody else has open. Closing
the tree ends its session, and whatever it took to open it.

The settings are Kafka's `zookeeper.*`, except that stores of keys and certificates are in PEM.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from odradek.broker.startup_error import StartupError
from odradek.controller.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.metadata_tree import MetadataTree
from odradek.controller.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot

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
        from odradek.controller.zookeeper_tree import ZooKeeperTree

        return await ZooKeeperTree.open(zookeeper_settings(config))
    os.makedirs(config.metadata_dir, exist_ok=True)
    return await EmbeddedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)


def zookeeper_settings(config: BrokerConfig) -> ZooKeeperSettings:
    """Raises StartupError for what cannot be."""
    try:
        hosts, chroot = hosts_and_chroot(config.zookeeper_connect or "")
    except ValueError as error:
        raise StartupError(f"zookeeper.connect={error}") from error
    session_timeout_ms = config.zookeeper_session_timeout_ms
    connection_timeout_ms = config.zookeeper_connection_timeout_ms
    return ZooKeeperSettings(
        hosts=hosts,
        chroot=chroot,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=session_timeout_ms if connection_timeout_ms is None else connection_timeout_ms,
        max_in_flight_requests=config.zookeeper_max_in_flight_requests,
        sets_acl=config.zookeeper_set_acl,
    )
