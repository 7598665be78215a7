"""The names of GSSAPI's users on a listener, by `sasl.kerberos.principal.to.local.rules`.

Kafka: DefaultKafkaPrincipalBuilder.applyKerberosShortNamer, SaslChannelBuilder.configure.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.principal_builder import PrincipalRefused
from odradek.broker.security.sasl.kerberos.kerberos_name import KerberosName, MalformedName
from odradek.broker.security.sasl.kerberos.short_namer import KerberosShortNamer, NoShortName
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig

RULES: Final = "sasl.kerberos.principal.to.local.rules"


def load_short_names(config: BrokerConfig, listener_name: str) -> Callable[[str], str]:
    """What makes the name of a user of a Kerberos principal, or raises PrincipalRefused. Raises: StartupError."""
    rules = cast("list[str]", config.listener_value(listener_name, RULES, ""))
    try:
        return partial(_short_name, KerberosShortNamer(_default_realm(), rules))
    except ConfigError as error:
        raise StartupError(f"Listener {listener_name}: {RULES}: {error}") from error


def _default_realm() -> str:
    try:
        from odradek.broker.security.sasl.kerberos.security_contexts import default_realm
    except ImportError:  # the mechanism refuses the start, and says what is missing
        return ""
    return default_realm()


def _short_name(namer: KerberosShortNamer, principal_name: str) -> str:
    try:
        return namer.short_name(KerberosName.parse(principal_name))
    except (MalformedName, NoShortName) as error:
        raise PrincipalRefused(
            f"Failed to set name for '{principal_name}' based on Kerberos authentication rules: {error}"
        ) from error
