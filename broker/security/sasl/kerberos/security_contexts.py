"""Security contexts of MIT Kerberos, by the package `gssapi`. Only here is it imported.

`krb5.conf` names the realms and their KDCs: `KRB5_CONFIG`, else `/etc/krb5.conf`. MIT's replay cache refuses a token
that was accepted before, also by another process of this user on this machine.

The client's tickets from a keytab are in a cache in memory, one for each keytab and principal, until half of their
life is over; then MIT's library gets new ones for the next connection.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, TypeVar, cast

import gssapi
from gssapi.exceptions import GSSError

from odradek.broker.security.sasl.kerberos.exchanges import SecurityContextError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.security.sasl.kerberos.exchanges import SecurityContext
    from odradek.broker.security.sasl.kerberos.krb5_login import Krb5Login

ResultT = TypeVar("ResultT")

_KRB5: Final = gssapi.MechType.kerberos

_KRB5_ERRORS: Final = -1765328384
"""MIT's number of the protocol's error 0 (`ERROR_TABLE_BASE_krb5`)."""

TRANSIENT_ERRORS: Final = frozenset({21, 33, 34})
"""The client or the ticket is not valid yet, and a replay. Kafka: KerberosError.retriable."""

_FLAGS: Final = (
    gssapi.RequirementFlag.mutual_authentication
    | gssapi.RequirementFlag.integrity
    | gssapi.RequirementFlag.confidentiality
    | gssapi.RequirementFlag.replay_detection
    | gssapi.RequirementFlag.out_of_sequence_detection
)
"""What Java's client asks for."""


class KerberosSecurityContext:
    """Implements `exchanges.SecurityContext`."""

    def __init__(self, context: gssapi.SecurityContext) -> None:
        # A failure raises at once: the library would return a token for the client, which Java's server does not send.
        context.__DEFER_STEP_ERRORS__ = False
        self._context = context

    def step(self, token: bytes, /) -> bytes | None:
        return _called(lambda: cast("bytes | None", self._context.step(token or None)))

    def is_established(self) -> bool:
        return cast("bool", self._context.complete)

    def initiator_name(self) -> str:
        return _called(lambda: bytes(self._context.initiator_name).decode())

    def wrap(self, message: bytes, /) -> bytes:
        return _called(lambda: cast("bytes", self._context.wrap(message, False).message))

    def unwrap(self, message: bytes, /) -> bytes:
        return _called(lambda: cast("bytes", self._context.unwrap(message).message))


def default_realm() -> str:
    """The realm of `krb5.conf` for names without one; empty, if there is none. Kafka:
    SaslChannelBuilder.defaultKerberosRealm.
    """
    try:
        name = bytes(gssapi.Name("tmp", gssapi.NameType.user).canonicalize(_KRB5)).decode()
    except (GSSError, UnicodeDecodeError):
        return ""
    return name.partition("@")[2]


def load_acceptor(login: Krb5Login) -> Callable[[], SecurityContext]:
    """What makes the contexts of a listener: they take tickets for its principal only. Raises: ConfigError, if the
    keytab has no key of the principal. The keys are read again for each client.
    """
    store = {} if login.keytab is None else {"keytab": f"FILE:{login.keytab}"}
    try:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(name=name, usage="accept", mechs=[_KRB5], store=store or None)
    except GSSError as error:
        raise ConfigError(f"GSSAPI cannot use {_keytab_of(login)} for {login.principal}: {_describe(error)}") from error
    return lambda: KerberosSecurityContext(gssapi.SecurityContext(creds=credentials, usage="accept"))


def make_initiator(login: Krb5Login, host: str) -> SecurityContext:
    """The client's context for a broker. Asks the KDC for the first ticket. Raises: SecurityContextError."""

    try:
        credentials = _client_credentials(login)
    except GSSError as error:
        sources = [
            *([_ticket_cache_of(login)] if login.uses_ticket_cache else []),
            *([_keytab_of(login)] if login.uses_keytab else []),
        ]
        raise SecurityContextError(
            f"no ticket for {login.principal or 'the client'} by {' or '.join(sources)}: {_describe(error)}",
            is_transient=_is_transient(error),
        ) from error

    def make() -> SecurityContext:
        target = gssapi.Name(f"{login.service_name}@{host}", gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(name=target, creds=credentials, mech=_KRB5, flags=_FLAGS, usage="initiate")
        return KerberosSecurityContext(context)

    return _called(make)


def _keytab_of(login: Krb5Login) -> str:
    return "the default keytab" if login.keytab is None else f"the keytab {login.keytab}"


def _ticket_cache_of(login: Krb5Login) -> str:
    return "the default ticket cache" if login.ticket_cache is None else f"the ticket cache {login.ticket_cache}"


def _client_credentials(login: Krb5Login) -> gssapi.Credentials:
    name = None
    if login.principal is not None:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    if login.uses_ticket_cache:
        store = {} if login.ticket_cache is None else {"ccache": f"FILE:{login.ticket_cache}"}
        try:
            credentials = gssapi.Credentials(name=name, usage="initiate", mechs=[_KRB5], store=store or None)
            if credentials.lifetime or not login.uses_keytab:
                return credentials
        except GSSError:
            if not login.uses_keytab:
                raise
    cache = hashlib.sha256(f"{login.keytab}\0{login.principal}".encode()).hexdigest()
    store = {"ccache": f"MEMORY:odradek-{cache}"}
    if login.keytab is not None:
        store["client_keytab"] = f"FILE:{login.keytab}"
    return gssapi.Credentials(name=name, usage="initiate", mechs=[_KRB5], store=store)


def _called(call: Callable[[], ResultT]) -> ResultT:
    """The result. Raises: SecurityContextError."""
    try:
        return call()
    except GSSError as error:
        raise SecurityContextError(_describe(error), is_transient=_is_transient(error)) from error
    except UnicodeDecodeError:
        raise SecurityContextError("the name of the principal is no text in UTF-8") from None


def _is_transient(error: GSSError) -> bool:
    return (error.min_code - _KRB5_ERRORS) & 0xFFFFFFFF in TRANSIENT_ERRORS


def _describe(error: GSSError) -> str:
    """The texts of the mechanism, which name principals and files, or else those of GSS-API."""
    texts = error.get_all_statuses(error.min_code, False) if error.min_code else []
    return "; ".join(texts or error.get_all_statuses(error.maj_code, True))
