"""Passwords among the dynamic configs of a broker: encrypted in the metadata, in plain text in memory.

Without `password.encoder.secret` no password can be stored. After a change of the secret the former one is
`password.encoder.old.secret`: the next start decodes passwords with it and encodes them with the new one.

Kafka: DynamicBrokerConfig.toPersistentProps, DynamicBrokerConfig.fromPersistentProps,
DynamicBrokerConfig.maybeReEncodePasswords.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from odradek.broker.config.dynamic.reconfiguration import is_password
from odradek.broker.machine.io_pool import run_in_pool
from odradek.storage.config.config_def import ConfigError, Password

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.password_encoder import Ciphers, PasswordEncoder
    from odradek.storage.disk.ports import IoPool

log = logging.getLogger(__name__)


class Passwords:
    """Encodes and decodes passwords, in the I/O pool."""

    def __init__(self, config: BrokerConfig, io_pool: IoPool, ciphers: Ciphers | None = None) -> None:
        """`ciphers`: those of `password_encoder` if None."""
        self._config = config
        self._io_pool = io_pool
        self._ciphers = ciphers

    async def encoded(self, configs: Mapping[str, str]) -> dict[str, str]:
        """The configs with encoded passwords. Raises: ConfigError if they cannot be encoded."""
        encoded = {}
        for name, text in configs.items():
            encoded[name] = await self._in_pool(self._encoder().encode, text) if is_password(name) else text
        return encoded

    async def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The configs with decoded passwords, without those that cannot be decoded, which are logged."""
        configs = {}
        for name, text in stored.items():
            try:
                configs[name] = await self._in_pool(self._encoder().decode, text) if is_password(name) else text
            except ConfigError as error:
                log.error("Dynamic password config %s could not be decoded, ignoring: %s", name, error)
        return configs

    async def encoded_anew(self, stored: Mapping[str, str]) -> dict[str, str] | None:
        """The configs with the passwords of the old secret encoded again; None without an old secret or a password.

        Raises: ConfigError if there is an old secret and no new one.
        """
        old = self._encoder_of("password.encoder.old.secret")
        if old is None or not any(map(is_password, stored)):
            return None
        configs = dict(stored)
        for name, text in stored.items():
            if is_password(name):
                try:
                    plain = await self._in_pool(old.decode, text)
                except ConfigError:
                    log.debug("The dynamic password config %s could not be decoded with the old secret", name)
                else:
                    configs[name] = await self._in_pool(self._encoder().encode, plain)
        return configs

    def _encoder(self) -> PasswordEncoder:
        encoder = self._encoder_of("password.encoder.secret")
        if encoder is None:
            raise ConfigError("Password encoder secret not configured")
        return encoder

    def _encoder_of(self, secret_name: str) -> PasswordEncoder | None:
        value = self._config.value
        secret = value(secret_name)
        if secret is None:
            return None
        from odradek.broker.config.password_encoder import AesCiphers, PasswordEncoder

        return PasswordEncoder(
            secret=cast("Password", secret),
            key_factory_algorithm=cast("str | None", value("password.encoder.keyfactory.algorithm")),
            cipher_algorithm=cast("str", value("password.encoder.cipher.algorithm")),
            key_length=cast("int", value("password.encoder.key.length")),
            iterations=cast("int", value("password.encoder.iterations")),
            ciphers=self._ciphers or AesCiphers(),
        )

    async def _in_pool(self, work: Callable[[str], str], text: str) -> str:
        """Run `work` in the I/O pool. Raises: ConfigError."""
        return await run_in_pool(self._io_pool, lambda: work(text))
