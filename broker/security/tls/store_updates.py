"""Keys and certificates that are replaced while the broker runs: by dynamic configs, or in files of the same path.

Stores are read in the I/O pool. New connections get the new contexts; the others keep theirs.

Kafka: DynamicBrokerConfig.processListenerReconfigurable, DynamicBrokerConfig.reloadUpdatedFilesWithoutConfigChange.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeAlias

from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.security.tls.ssl_factory import SslFactory
    from odradek.broker.security.tls.tls_contexts import TlsContexts
    from odradek.storage.disk.ports import IoPool

log = logging.getLogger(__name__)

_Factories: TypeAlias = "Mapping[str, SslFactory]"


class StoreUpdates:
    """Implements the port `config.dynamic_config.StoreUpdates`."""

    def __init__(self, contexts: TlsContexts, io_pool: IoPool) -> None:
        self._contexts = contexts
        self._io_pool = io_pool

    async def validate(self, candidate: BrokerConfig) -> None:
        """Raises: ConfigError if a listener could not use the stores of this configuration."""
        await self._read(candidate, only_files=False)

    async def reload_files(self, candidate: BrokerConfig) -> None:
        """Use files that have changed under paths that stay the same. Raises: ConfigError."""
        self._contexts.replace(await self._read(candidate, only_files=True))

    async def apply(self, config: BrokerConfig) -> None:
        """Use the stores of the configuration; if they cannot be used, those before them stay."""
        try:
            self._contexts.replace(await self._read(config, only_files=False))
        except ConfigError as error:
            log.error("The stores of the listeners stay as they are: %s", error)

    async def _read(self, config: BrokerConfig, *, only_files: bool) -> _Factories:
        waiting: asyncio.Future[_Factories | ConfigError | OSError] = asyncio.get_running_loop().create_future()

        def work() -> _Factories | ConfigError:
            try:
                return self._contexts.replacements(config, only_files=only_files)
            except ConfigError as error:
                return error

        def done(result: _Factories | ConfigError | OSError) -> None:
            if not waiting.done():
                waiting.set_result(result)

        self._io_pool.submit(work, done)
        result = await waiting
        if isinstance(result, ConfigError | OSError):
            raise result
        return result
