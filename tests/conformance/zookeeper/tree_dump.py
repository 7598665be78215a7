"""All nodes of a cluster in a ZooKeeper, in a form in which two clusters can be compared."""

from __future__ import annotations

import asyncio
import json
import re
from typing import NamedTuple

from odradek.controller.tree.metadata_tree import GetChildren, GetData, NoNode, TreeError
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes.metadata_client import submit_all

_OF_ONE_RUN = {"id": re.compile(r"[\w-]{22}"), "topic_id": re.compile(r"[\w-]{22}"), "timestamp": re.compile(r"\d{13}")}
"""Values that no two clusters share, by key, and what they look like."""


class Node(NamedTuple):
    data: object
    """Decoded JSON; else the bytes, or None for null."""
    version: int
    is_ephemeral: bool


async def dump(connect: str, *, port: int) -> dict[str, Node]:
    """By path. A value that belongs to one run alone, the port of the broker included, becomes its kind."""
    hosts, chroot = hosts_and_chroot(connect)
    tree = await ZooKeeperTree.open(ZooKeeperSettings(hosts=hosts, chroot=chroot))
    found: dict[str, Node] = {}
    level = ["/"]
    while level:
        nodes = await submit_all(tree, [GetData(path) for path in level])
        children = await submit_all(tree, [GetChildren(path) for path in level])
        below: list[str] = []
        for path, node, names in zip(level, nodes, children, strict=True):
            if isinstance(node, TreeError) or isinstance(names, TreeError):
                assert NoNode in (type(node), type(names))  # deleted meanwhile
                continue
            found[path] = Node(_decoded(node.data, port), node.stat.version, node.stat.ephemeral_owner != 0)
            below += [f"{path.rstrip('/')}/{name}" for name in names.names]
        level = below
    await tree.close()
    return found


def dumped(connect: str, *, port: int) -> dict[str, Node]:
    return asyncio.run(dump(connect, port=port))


def _decoded(data: bytes | None, port: int) -> object:
    if data is None:
        return None
    try:
        value = json.loads(data.replace(b"%d" % port, b"9092"))
    except ValueError:
        return data
    return {key: _without_random_parts(key, held) for key, held in value.items()} if isinstance(value, dict) else data


def _without_random_parts(key: str, value: object) -> object:
    kind = _OF_ONE_RUN.get(key)
    return key if kind is not None and isinstance(value, str) and kind.fullmatch(value) else value
