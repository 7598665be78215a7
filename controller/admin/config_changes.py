"""Listens for changed configs: every broker applies each change of topic, broker, client, user and IP configs.

Each change creates a sequential node below `/config/changes` with the entity's name, without the value. At the start,
all existing configs are applied once.

Kafka: ZkConfigManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.admin.node_changes import NodeChangeListener
from odradek.controller.znodes import znodes

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

APPLIED_AT_ONCE: Final = 50
"""Number of configs applied at the start before the event loop gets a turn."""

OnConfigChange: TypeAlias = Callable[[str, str, dict[str, str]], Awaitable[None]]
"""Entity type, entity name as in the path (`alice/clients/app`, `<default>`), and the whole config."""

_ENTITY_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")


class ConfigChangeListener:
    """See the module. Changes are applied one at a time; a failed one is logged, and the next one follows."""

    def __init__(self, client: MetadataClient, clock: Clock, on_config_change: OnConfigChange) -> None:
        self._client = client
        self._on_config_change = on_config_change
        self._changes = NodeChangeListener(
            client, clock, znodes.CONFIG_CHANGES, znodes.CONFIG_CHANGE_PREFIX, self._process
        )

    async def start(self) -> None:
        """Apply all existing configs, then begin to listen."""
        await self._changes.process_notifications()
        for entity_type in _ENTITY_TYPES:
            await self._apply_all(entity_type)
        self._changes.listen()

    async def shutdown(self) -> None:
        await self._changes.shutdown()

    async def _process(self, _: str, data: bytes | None) -> None:
        """Implements `node_changes.ProcessNotification`."""
        entity_path = znodes.decode_config_change(data)
        config = await self._client.entity_config(entity_path)
        entity_type, _, entity_name = entity_path.partition("/")
        logger.info("Processing override for entity path %s with keys %s", entity_path, sorted(config))
        await self._apply(entity_type, entity_name, config)

    async def _apply(self, entity_type: str, entity_name: str, config: dict[str, str]) -> None:
        try:
            await self._on_config_change(entity_type, entity_name, config)
        except Exception:
            # Any exception: the later changes must still be applied.
            logger.exception("Failed to apply the configs of %s/%s: %s", entity_type, entity_name, sorted(config))

    async def _apply_all(self, entity_type: str) -> None:
        names = list(await self._client.children(f"/config/{entity_type}"))
        if entity_type == "users":
            for user in tuple(names):
                clients = await self._client.children(f"/config/users/{user}/clients")
                names += [f"{user}/clients/{client}" for client in clients]
        configs = await self._client.entity_configs(entity_type, names)
        for number, (name, config) in enumerate(configs.items(), 1):
            await self._apply(entity_type, name, config)
            if number % APPLIED_AT_ONCE == 0:
                await asyncio.sleep(0)
