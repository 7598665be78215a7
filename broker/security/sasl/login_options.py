"""What the login modules of PLAIN and SCRAM read of their JAAS entries.

Kafka: PlainLoginModule, ScramLoginModule, PlainSaslClient, ScramSaslClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from odradek.broker.security.sasl.ports import JaasEntry, SaslContext


def require_module(context: SaslContext, login_module: str) -> None:
    """Raises: ConfigError, if the entry names another login module than that of the mechanism."""
    named = context.jaas_entry.login_module
    if named != login_module:
        raise ConfigError(
            f"The JAAS entry for {context.mechanism} names {named}, which is not supported; {login_module} is."
        )


def login_name_and_password(entry: JaasEntry) -> tuple[str, str]:
    """The options of a client. Raises: ConfigError."""
    username, password = entry.options.get("username"), entry.options.get("password")
    if username is None or password is None:
        raise ConfigError("Cannot get userid/password: the JAAS entry has no username or no password")
    return username, password
