"""`odradek metadata copy`: copies a cluster's metadata between two locations, each a database or a ZooKeeper.

A database is locked as a broker locks it: a copy and a running broker exclude each other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from odradek.broker.machine.log_setup import configure_logging, muted
from odradek.broker.machine.startup_error import StartupError, refuse
from odradek.broker.metadata.zookeeper_client import client_settings
from odradek.broker.tools.command.client_config import read_properties
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.output import Output
from odradek.controller.tree.embedded_tree import METADATA_FILE, TreeDatabase
from odradek.controller.tree.metadata_tree import Nodes, TreeError
from odradek.controller.tree.zookeeper_settings import REQUESTS_IN_FLIGHT_MAX, ZooKeeperSettings, hosts_and_chroot
from odradek.controller.znodes.metadata_copy import Copied, CopyRefused, copy_metadata
from odradek.storage.config.config_def import ConfigError
from odradek.timer.clock import SystemClock

ZOOKEEPER_SCHEME: Final = "zookeeper://"


def main(source: str, target: str, *, overwrite: bool, config_file: str | None, is_json: bool) -> int:
    """`config_file`: a properties file; its keys for the connection count for each side that is a ZooKeeper.

    Exit status 0 when the target equals the source, else 1 with one line that gives the reason.
    """
    configure_logging("ERROR")
    try:
        keys = {} if config_file is None else read_properties(config_file)
        with muted("kazoo"):  # it also raises what it logs
            copied = asyncio.run(_copy(source, target, overwrite, keys))
    except (CommandFailed, ConfigError, CopyRefused, StartupError, TreeError) as error:
        return refuse(error)
    written = f"{copied.nodes} nodes, {copied.writes} writes"
    line = f"{target} holds the metadata of the cluster {copied.cluster_id}: {written}"
    facts = {"target": target, "cluster_id": copied.cluster_id, "nodes": copied.nodes, "writes": copied.writes}
    Output.in_lines(is_json=is_json).document(facts, [line])
    return 0


async def _copy(source: str, target: str, overwrite: bool, keys: Mapping[str, str]) -> Copied:
    async with (
        open_nodes(source, keys, is_target=False) as from_nodes,
        open_nodes(target, keys, is_target=True) as to_nodes,
    ):
        return await copy_metadata(from_nodes, to_nodes, overwrite=overwrite)


@asynccontextmanager
async def open_nodes(location: str, keys: Mapping[str, str], *, is_target: bool) -> AsyncIterator[Nodes]:
    """The nodes at a location, open until the context ends. `keys` for ZooKeeper: see `client_settings`.

    Raises: ConfigError, CopyRefused, StartupError, TreeError.
    """
    if location.startswith(ZOOKEEPER_SCHEME):
        from odradek.controller.tree.zookeeper_tree import ZooKeeperTree

        settings = zookeeper_settings(location, keys)
        zookeeper = await ZooKeeperTree.open(settings, waits_for_server=False, creates_chroot=is_target)
        try:
            yield zookeeper
        finally:
            await zookeeper.close()
    else:
        database = await TreeDatabase.open(database_path(location, must_exist=not is_target), SystemClock())
        try:
            yield await database.connect()
        finally:
            await database.close()


def zookeeper_settings(location: str, keys: Mapping[str, str]) -> ZooKeeperSettings:
    """For `zookeeper://host:port,host:port/chroot`. Raises: ConfigError, CopyRefused, StartupError."""
    connect = location.removeprefix(ZOOKEEPER_SCHEME)
    try:
        hosts_and_chroot(connect)
    except ValueError as error:
        raise CopyRefused(f"{location}: expected {ZOOKEEPER_SCHEME}host:port[,host:port]/chroot") from error
    return replace(client_settings(connect, keys), max_in_flight_requests=REQUESTS_IN_FLIGHT_MAX)


def database_path(location: str, *, must_exist: bool) -> str:
    """The path of the database in a directory, or of a database file. Raises: CopyRefused."""
    path = os.path.join(location, METADATA_FILE) if os.path.isdir(location) else location
    if must_exist and not os.path.isfile(path):
        raise CopyRefused(f"{path}: there is no metadata")
    if not (path.endswith(".db") and os.path.isdir(os.path.dirname(os.path.abspath(path)))):
        raise CopyRefused(f"{location} is neither a directory nor a .db file in one")
    return path
