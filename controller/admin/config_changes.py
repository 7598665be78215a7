"""Listens for changed configs: every broker applies each change of topic, broker, client, user and IP configs.

Each change creates a sequential node below `/config/changes` with the entity's name, without the value. The listener
reads the entity's *current* config, so late and repeated notifications are harmless. Numbers already processed are
skipped; any broker deletes nodes older than 15 minutes. At the start, all existing configs are applied once.

Kafka: ZkConfigManager, ZkNodeChangeNotificationListener.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.tree.metadata_tree import Delete, TreeError, WatchEvent
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000

APPLIED_AT_ONCE: Final = 50
"""Number of configs applied at the start before the event loop gets a turn."""

OnConfigChange: TypeAlias = Callable[[str, str, dict[str, str]], Awaitable[None]]
"""Entity type, entity name as in the path (`alice/clients/app`, `<default>`), and the whole config."""

_ENTITY_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")


class ConfigChangeListener:
    """See the module. Changes are applied one at a time; a failed one is logged, and the next one follows."""

    def __init__(self, client: MetadataClient, clock: Clock, on_config_change: OnConfigChange) -> None:
        self._client = client
        self._clock = clock
        self._on_config_change = on_config_change
        self._last_executed_change = -1
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        client.tree.add_session_listener(self)

    async def start(self) -> None:
        """Apply all existing configs, then begin to listen."""
        await self._process_notifications()
        for entity_type in _ENTITY_TYPES:
            await self._apply_all(entity_type)
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="config-changes")

    async def shutdown(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def session_lost(self) -> None:
        """Implements SessionListener: does nothing."""

    def session_started(self) -> None:
        """Implements SessionListener: the watch is lost, so read the notifications again."""
        self._changed.set()

    def _on_watch(self, _: WatchEvent) -> None:
        self._changed.set()

    async def _listen(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._process_notifications()
            except TreeError as error:
                logger.error("Error while processing notifications of %s: %r", znodes.CONFIG_CHANGES, error)

    async def _process_notifications(self) -> None:
        names = await self._client.numbered_children(znodes.CONFIG_CHANGES, self._on_watch)
        for name in names:
            number = znodes.sequence_number(name, znodes.CONFIG_CHANGE_PREFIX)
            if number > self._last_executed_change:
                await self._process(f"{znodes.CONFIG_CHANGES}/{name}")
                self._last_executed_change = number
        await self._purge_obsolete(names)

    async def _process(self, path: str) -> None:
        node = await self._client.get(path)
        if node is None:
            return
        try:
            entity_path = znodes.decode_config_change(node.data)
            config = await self._client.entity_config(entity_path)
        except BadZnode as error:
            logger.error("Error processing the change notification %s: %s", path, error)
            return
        entity_type, _, entity_name = entity_path.partition("/")
        logger.info("Processing override for entity path %s with keys %s", entity_path, sorted(config))
        await self._apply(entity_type, entity_name, config)

    async def _apply(self, entity_type: str, entity_name: str, config: dict[str, str]) -> None:
        try:
            await self._on_config_change(entity_type, entity_name, config)
        except Exception:
            # Any exception: the later changes must still be applied.
            logger.exception("Failed to apply the configs of %s/%s: %s", entity_type, entity_name, sorted(config))

    async def _purge_obsolete(self, names: list[str]) -> None:
        now_ms = self._clock.time_ms()
        for name in names:
            path = f"{znodes.CONFIG_CHANGES}/{name}"
            node = await self._client.get(path)
            if node is None:
                continue
            if now_ms - node.stat.ctime_ms <= CHANGE_EXPIRATION_MS:
                return
            logger.debug("Purging change notification %s", path)
            await self._client.tree.submit([Delete(path)])

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
