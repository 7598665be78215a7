"""A client of a metadata tree in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.timer.clock import ManualClock

CONTROLLER = b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}'


@asynccontextmanager
async def opened(
    configs: Mapping[str, Mapping[str, str]] | None = None, nodes: Mapping[str, bytes] | None = None
) -> AsyncIterator[MetadataClient]:
    """`configs`: by the path of their entity, such as `users/a`. `nodes`: by their paths."""
    database = await TreeDatabase.open(":memory:", ManualClock())
    try:
        client = MetadataClient(await database.connect())
        for path, config in (configs or {}).items():
            await client.create_recursive(znodes.entity_config_path(path), znodes.encode_entity_config(dict(config)))
        for path, data in (nodes or {}).items():
            await client.create_recursive(path, data)
        yield client
    finally:
        await database.close()
