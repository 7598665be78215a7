"""Keys and certificates that are replaced while the broker runs: by dynamic configs, or in files of the same path.

Stores are read in the I/O pool. New connections get the new contexts; the others keep theirs.

Kafka: DynamicBrokerConfig.processListenerReconfigurable, DynamicBrokerConfig.reloadUpdatedFilesWithoutConfigChange.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.machine.io_pool import run_in_pool

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.security.tls.tls_contexts import Replacements, TlsContexts
    from odradek.storage.disk.ports import IoPool

log = logging.getLogger(__name__)


class StoreUpdates:
    """Implements the port `config.dynamic_config.StoreUpdates`."""

    def __init__(self, contexts: TlsContexts, io_pool: IoPool) -> None:
        self._contexts = contexts
        self._io_pool = io_pool

    async def validate(self, candidate: BrokerConfig) -> None:
        """Raises: ConfigError if a listener could not use the stores that it has with this configuration only."""
        _raise_first(await self._read(candidate, only_files=False))

    async def reload_files(self, candidate: BrokerConfig) -> None:
        """Use files that have changed under paths that stay the same. Raises: ConfigError."""
        read = await self._read(candidate, only_files=True)
        _raise_first(read)
        self._contexts.replace(read.factories)

    async def apply(self, candidate: BrokerConfig) -> set[str]:
        """Use the stores of this configuration. Returns the listeners that keep theirs, because these cannot be used.

        The names are in lower case, as in the prefixes of keys. The reasons are logged.
        """
        factories, refused = await self._read(candidate, only_files=False)
        self._contexts.replace(factories)
        for name, error in refused.items():
            log.error("The stores of listener %s stay as they are: %s", name, error)
        return {name.lower() for name in refused}

    async def _read(self, config: BrokerConfig, *, only_files: bool) -> Replacements:
        return await run_in_pool(self._io_pool, lambda: self._contexts.replacements(config, only_files=only_files))


def _raise_first(read: Replacements) -> None:
    for error in read.refused.values():
        raise error
