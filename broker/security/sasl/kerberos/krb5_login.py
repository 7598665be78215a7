"""What GSSAPI reads of its JAAS entry, which names Java's login module of Kerberos.

    com.sun.security.auth.module.Krb5LoginModule required
        useKeyTab=true storeKey=true keyTab="/etc/kafka/kafka.keytab" principal="kafka/broker.example.com@EXAMPLE.COM";

Options that are not named here have no effect. Nobody is asked for a password.

Kafka: KerberosLogin. Java: Krb5LoginModule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.security.sasl.login_options import require_module
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.security.sasl.ports import JaasEntry, SaslContext

LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

SERVICE_NAME: Final = "sasl.kerberos.service.name"

_FILE: Final = "file:"


class Krb5Login(NamedTuple):
    """Whose credentials are used, and where they are."""

    principal: str | None
    """None: that of the ticket cache."""
    service_name: str
    """The first component of the principals of the servers."""
    uses_keytab: bool
    keytab: str | None
    """A path; None: the library's default, as the next."""
    uses_ticket_cache: bool
    ticket_cache: str | None


def server_login(context: SaslContext) -> Krb5Login:
    """The entry of a listener. Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    login = _login(context.jaas_entry.options, _service_name(context))
    missing = [name for name in ("useKeyTab", "storeKey") if not _is_true(context.jaas_entry.options, name)]
    if missing:
        raise ConfigError(f"The JAAS entry for GSSAPI needs {' and '.join(f'{name}=true' for name in missing)}")
    if login.principal in (None, "*"):
        raise ConfigError("The JAAS entry for GSSAPI needs the principal of this broker")
    return login


def client_login(context: SaslContext) -> Krb5Login:
    """The entry of a client of brokers. Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    return login_of(context.jaas_entry, _service_name(context))


def login_of(entry: JaasEntry, service_name: str) -> Krb5Login:
    """The entry of a client of any service. Raises: ConfigError."""
    login = _login(entry.options, service_name)
    if not (login.uses_keytab or login.uses_ticket_cache):
        raise ConfigError(
            "Could not login: the client is being asked for a password, which is not supported; the JAAS entry for "
            "GSSAPI needs useTicketCache=true, or useKeyTab=true with a keyTab and a principal"
        )
    if login.principal is None and not login.uses_ticket_cache:
        raise ConfigError("The JAAS entry for GSSAPI needs the principal whose key is in the keytab")
    return login


def _login(options: Mapping[str, str], service_name: str) -> Krb5Login:
    return Krb5Login(
        options.get("principal"),
        service_name,
        _is_true(options, "useKeyTab"),
        _path(options.get("keyTab")),
        _is_true(options, "useTicketCache"),
        _path(options.get("ticketCache")),
    )


def _service_name(context: SaslContext) -> str:
    """Kafka: KerberosLogin.getServiceName."""
    of_entry, of_key = context.jaas_entry.options.get("serviceName"), context.value(SERVICE_NAME)
    if of_entry is not None and of_key is not None and of_entry != of_key:
        raise ConfigError(
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_entry}, value in "
            f"Kafka config {of_key}"
        )
    name = of_key if of_entry is None else of_entry
    if name is None:
        raise ConfigError(f"No serviceName defined in either JAAS or Kafka config: set {SERVICE_NAME}")
    return str(name)


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _path(text: str | None) -> str | None:
    return text[len(_FILE) :] if text is not None and text.lower().startswith(_FILE) else text
