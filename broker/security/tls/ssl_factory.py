"""The TLS contexts of one listener or client: made from its settings, and made anew when certificates are replaced.

A running connection keeps the context with which it began. A new context has new keys for session tickets, so that
a client whose certificate is no longer trusted cannot resume a session.

Kafka: SslFactory, DefaultSslEngineFactory, CertificateEntries.ensureCompatible, SslEngineValidator.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls.alerts import AlertKeepingContext
from odradek.broker.security.tls.der import DerError
from odradek.broker.security.tls.distinguished_name import rfc2253
from odradek.broker.security.tls.stores import KeyStore, TrustStore, load_key_store, load_trust_store
from odradek.broker.security.tls.versions import cipher_string, versions
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.security.tls.settings import TlsSettings

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_HTTPS: Final = "https"
_HANDSHAKE_STEPS: Final = 20
"""More than any handshake in memory needs."""


class SslFactory:
    """Loaded stores, and the contexts made from them."""

    def __init__(
        self, settings: TlsSettings, *, is_server: bool, keystore_verifiable_using_truststore: bool = False
    ) -> None:
        """Read the stores and make the context of a server or a client. Blocks for the files. Raises: ConfigError.

        `keystore_verifiable_using_truststore`: the listener is for other brokers, so that a broker has to accept its
        own certificate.
        """
        self.settings = settings
        self.key_store = load_key_store(settings.key_store)
        self.trust_store = load_trust_store(settings.trust_store)
        self._is_server = is_server
        self._is_verifiable = keystore_verifiable_using_truststore
        if is_server:
            _ = self.server_context
        if not is_server or self._is_verifiable:
            _ = self.client_context
        if self._is_verifiable:
            _validate_handshake(
                self,
                self,
                "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created "
                "with those settings.",
            )

    @cached_property
    def server_context(self) -> ssl.SSLContext:
        """For accepting. Raises: ConfigError, at the latest in `__init__` of a server."""
        return self._make_context(ssl.PROTOCOL_TLS_SERVER)

    @cached_property
    def client_context(self) -> ssl.SSLContext:
        """For connecting. Raises: ConfigError, at the latest in `__init__` of a client."""
        return self._make_context(ssl.PROTOCOL_TLS_CLIENT)

    def unchecked_client_context(self) -> ssl.SSLContext:
        """As `client_context`, without the check of the host name. Raises: ConfigError."""
        context = self._make_context(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        return context

    def should_be_rebuilt(self, settings: TlsSettings) -> bool:
        """Whether settings or files differ from those that were read. Asks the file system."""
        files = (store.file for store in (self.key_store, self.trust_store) if store is not None)
        return settings != self.settings or any(file is not None and file.is_modified() for file in files)

    def reconfigured(self, settings: TlsSettings) -> SslFactory:
        """The factory with the stores of these settings: this one if nothing has changed.

        All else stays as it is. Raises: ConfigError if they do not fit. Kafka: SslFactory.createNewSslEngineFactory.
        """
        settings = self.settings.with_stores_of(settings)
        if not self.should_be_rebuilt(settings):
            return self
        try:
            new = SslFactory(
                settings, is_server=self._is_server, keystore_verifiable_using_truststore=self._is_verifiable
            )
            self._check_stores(new)
            if self._is_verifiable and (self.trust_store is not None or self.key_store is not None):
                for server, client in ((self, new), (new, self)):
                    _validate_handshake(server, client, "The old and the new settings do not accept each other")
        except ConfigError as error:
            raise ConfigError(f"Validation of dynamic config update of SSLFactory failed: {error}") from error
        return new

    def _check_stores(self, new: SslFactory) -> None:
        if self.key_store is None:
            if new.key_store is not None:
                raise ConfigError(
                    "Cannot add SSL keystore to an existing listener for which no keystore was configured."
                )
        elif new.key_store is None:
            raise ConfigError(
                "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
            )
        else:
            _ensure_compatible(self.key_store, new.key_store, new.settings)
        if self.trust_store is None and new.trust_store is not None:
            raise ConfigError(
                "Cannot add SSL truststore to an existing listener for which no truststore was configured."
            )

    def _make_context(self, protocol: int) -> ssl.SSLContext:
        settings, is_server = self.settings, protocol == ssl.PROTOCOL_TLS_SERVER
        context = AlertKeepingContext(protocol)
        context.check_hostname = False
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.minimum_version, context.maximum_version = versions(
            settings.protocol, settings.enabled_protocols, settings.cipher_suites
        )
        ciphers = cipher_string(settings.cipher_suites)
        try:
            if ciphers is not None:
                context.set_ciphers(ciphers)
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites={','.join(settings.cipher_suites)}: the TLS library knows none of them"
            ) from None
        if is_server:
            context.verify_mode = _CLIENT_AUTH[settings.client_auth]
        else:
            context.verify_mode = ssl.CERT_REQUIRED
            context.check_hostname = _checks_host_name(settings.endpoint_identification)
        # As in Java, each certificate of a trust store is an anchor, also one that another certificate has signed.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if context.verify_mode is not ssl.CERT_NONE:
            _trust(context, self.trust_store, is_server=is_server)
        if self.key_store is not None:
            _load_chain(context, self.key_store)
        return context


def _checks_host_name(algorithm: str) -> bool:
    if algorithm and algorithm.lower() != _HTTPS:
        raise ConfigError(
            f"Invalid value {algorithm} for configuration ssl.endpoint.identification.algorithm: "
            f"either {_HTTPS} or empty"
        )
    return bool(algorithm)


def _trust(context: ssl.SSLContext, store: TrustStore | None, *, is_server: bool) -> None:
    if store is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH)
        return
    if not store.certificates:  # no one is trusted
        return
    try:
        context.load_verify_locations(cadata=store.certificates)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"The certificates of {store} cannot be used: {error}") from None
    if not store.revocation_lists:
        return
    try:
        with _as_file(store.revocation_lists) as path:
            context.load_verify_locations(cafile=path)
    except OSError as error:  # SSLError is an OSError
        raise ConfigError(f"The revocation lists of {store} cannot be used: {error}") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _load_chain(context: ssl.SSLContext, store: KeyStore) -> None:
    try:
        with _as_file(store.key + store.chain) as path:
            # A function, because OpenSSL would prompt for a missing password at the terminal.
            context.load_cert_chain(
                path, password=lambda: "" if store.key_password is None else store.key_password.value
            )
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = getattr(error, "reason", None) or "the key cannot be decrypted with ssl.key.password"
        raise ConfigError(f"The private key of {store} cannot be used with its certificate: {reason}") from None


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """The path of a file in memory, or of one that only this user can read.

    Python's `ssl` reads keys and revocation lists from files only. Raises: OSError.
    """
    fd = os.memfd_create("store", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else -1
    path = f"/proc/self/fd/{fd}"
    if fd < 0:
        fd, path = tempfile.mkstemp()
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(text.encode())
        yield path
    finally:
        os.close(fd)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _ensure_compatible(old: KeyStore, new: KeyStore, settings: TlsSettings) -> None:
    """Raises: ConfigError. Kafka: CertificateEntries.ensureCompatible."""
    try:
        before, after = rfc2253(old.names.subject), rfc2253(new.names.subject)
    except DerError as error:
        raise ConfigError(f"The name of a certificate cannot be read: {error}") from None
    if not settings.allow_dn_changes and _canonical(before) != _canonical(after):
        raise ConfigError(
            "Keystore DistinguishedName does not match:  "
            f"existing={{alias=kafka, DN={before}}}, new={{alias=kafka, DN={after}}}"
        )
    if not settings.allow_san_changes and not old.names.alternative_names <= new.names.alternative_names:
        raise ConfigError(
            "Keystore SubjectAltNames do not match: the new certificate lacks alternative names of the existing one"
        )


def _canonical(name: str) -> str:
    return " ".join(name.lower().split())


def _validate_handshake(server: SslFactory, client: SslFactory, refusal: str) -> None:
    """Make a handshake in memory, without the check of the host name. Raises: ConfigError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.unchecked_client_context().wrap_bio(to_client, to_server, server_side=False),
        server.server_context.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    try:
        for _ in range(_HANDSHAKE_STEPS):
            for end in list(waiting):
                try:
                    end.do_handshake()
                    waiting.remove(end)
                except ssl.SSLWantReadError:
                    pass
            if not waiting:
                return
    except ssl.SSLError as error:
        raise ConfigError(f"{refusal} ({getattr(error, 'verify_message', None) or error.reason})") from None
    raise ConfigError(refusal)
