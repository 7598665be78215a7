"""Key stores and trust stores: PEM files, PEM texts in the configuration, and PKCS12 files.

A trust store in PEM may have lists of revoked certificates (`X509 CRL`), which Apache Kafka ignores.

A file of type JKS is read as PKCS12, as Java does it; one in the old format of Java is refused with the command that
converts it. PKCS12 needs the package `cryptography`.

Kafka: DefaultSslEngineFactory.createKeystore, DefaultSslEngineFactory.createTruststore, FileBasedStore, PemStore.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from odradek.broker.security.tls.der import CertificateNames, DerError, certificate_names
from odradek.broker.security.tls.pem import (
    CERTIFICATE,
    PRIVATE_KEY,
    PemEntry,
    pem_entries,
    revocation_lists,
)
from odradek.storage.config.config_def import ConfigError, Password

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.security.tls.settings import StoreSettings

logger = logging.getLogger(__name__)

StoreT = TypeVar("StoreT")

PEM: Final = "PEM"
_PKCS12_TYPES: Final = frozenset({"JKS", "PKCS12"})
_JKS_MAGIC: Final = bytes.fromhex("feedfeed")
_JCEKS_MAGIC: Final = bytes.fromhex("cececece")
STORE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A larger file is no store."""


class KeyStore(NamedTuple):
    """A private key with its certificates."""

    chain: str
    """The certificates in PEM, the own one first."""
    key: str
    """The private key in PEM, perhaps encrypted."""
    key_password: Password | None
    names: CertificateNames
    file: StoreFile | None

    def __repr__(self) -> str:
        return f"KeyStore({self.file})"


class TrustStore(NamedTuple):
    """Trusted certificates."""

    certificates: str
    """In PEM."""
    file: StoreFile | None
    revocation_lists: str = ""
    """In PEM. If there is one, each authority that has signed a certificate of a chain must have its own."""

    def __repr__(self) -> str:
        return f"TrustStore({self.file})"


class StoreFile(NamedTuple):
    """A file, and when it was changed last before it was read (ns since 1970)."""

    path: str
    modified_ns: int

    def is_modified(self) -> bool:
        """Whether the file has changed since; a file that is not there has not."""
        try:
            return os.stat(self.path).st_mtime_ns != self.modified_ns
        except OSError:
            return False


def load_key_store(settings: StoreSettings) -> KeyStore | None:
    """None if no key is configured. Raises: ConfigError, which names the file and no secret."""
    path, is_pem = settings.location, settings.type == PEM
    if settings.key is not None:
        if not is_pem:
            raise ConfigError(f"SSL private key can be specified only for PEM, but key store type is {settings.type}.")
        if settings.certificates is None:
            raise ConfigError("SSL private key is specified, but certificate chain is not specified.")
        if path is not None:
            raise ConfigError("Both SSL key store location and separate private key are specified.")
        if settings.password is not None:
            raise ConfigError(
                "SSL key store password cannot be specified with PEM format, only key password may be specified."
            )
        return _pem_key_store(settings.certificates.value, settings.key.value, settings.key_password, None)
    if settings.certificates is not None:
        raise ConfigError("SSL certificate chain is specified, but private key is not specified")
    if is_pem and path is not None:
        if settings.password is not None:
            raise ConfigError(
                "SSL key store password cannot be specified with PEM format, only key password may be specified"
            )
        return _from_pem_file(path, lambda text, file: _pem_key_store(text, text, settings.key_password, file))
    if path is None and settings.password is not None:
        raise ConfigError("SSL key store is not specified, but key store password is specified.")
    if path is None:
        return None
    if settings.password is None:
        raise ConfigError("SSL key store is specified, but key store password is not specified.")
    return _pkcs12_key_store(path, settings.type, settings.password)


def load_trust_store(settings: StoreSettings) -> TrustStore | None:
    """None if none is configured. Raises: ConfigError, which names the file and no secret."""
    path, is_pem = settings.location, settings.type == PEM
    if settings.certificates is not None:
        if not is_pem:
            raise ConfigError(
                f"SSL trust store certs can be specified only for PEM, but trust store type is {settings.type}."
            )
        if path is not None:
            raise ConfigError("Both SSL trust store location and separate trust certificates are specified.")
        if settings.password is not None:
            raise ConfigError("SSL trust store password cannot be specified for PEM format.")
        return _pem_trust_store(settings.certificates.value, None)
    if is_pem and path is not None:
        if settings.password is not None:
            raise ConfigError("SSL trust store password cannot be specified for PEM format.")
        return _from_pem_file(path, _pem_trust_store)
    if path is None and settings.password is not None:
        raise ConfigError("SSL trust store is not specified, but trust store password is specified.")
    if path is None:
        return None
    return _pkcs12_trust_store(path, settings.type, settings.password)


def _from_pem_file(path: str, load: Callable[[str, StoreFile], StoreT]) -> StoreT:
    file, content = _read(path, PEM)
    try:
        return load(content.decode("utf-8", "replace"), file)
    except ConfigError as error:
        raise ConfigError(f"Failed to load PEM SSL keystore {path}: {error}") from None


def _read(path: str, store_type: str) -> tuple[StoreFile, bytes]:
    try:
        with open(path, "rb") as file:
            modified_ns = os.fstat(file.fileno()).st_mtime_ns
            content = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"Failed to load SSL keystore {path} of type {store_type}: {error.strerror}") from None
    if len(content) > STORE_BYTES_MAX:
        raise ConfigError(f"Failed to load SSL keystore {path} of type {store_type}: it is larger than any key store")
    return StoreFile(path, modified_ns), content


def _pem_key_store(chain: str, key: str, key_password: Password | None, file: StoreFile | None) -> KeyStore:
    keys = pem_entries(key, PRIVATE_KEY)
    if len(keys) != 1:
        raise ConfigError(f"Expected one private key, but found {len(keys)}")
    certificates = pem_entries(chain, CERTIFICATE)
    return KeyStore(
        _in_pem(certificates),
        keys[0].text(),
        key_password,
        _names(certificates[0].content),
        file,
    )


def _pem_trust_store(text: str, file: StoreFile | None) -> TrustStore:
    certificates, lists = pem_entries(text, CERTIFICATE), revocation_lists(text)
    return TrustStore(_in_pem(certificates), file, _in_pem(lists))


def _in_pem(entries: Sequence[PemEntry]) -> str:
    return "".join(entry.text() for entry in entries)


def _names(certificate: bytes) -> CertificateNames:
    try:
        return certificate_names(certificate)
    except DerError as error:
        raise ConfigError(f"A certificate cannot be read: {error}") from None


def _pkcs12_key_store(path: str, store_type: str, password: Password) -> KeyStore:
    file, content = _pkcs12_file(path, store_type)
    store = _pkcs12(path, store_type, content, password)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        raise ConfigError(f"The SSL keystore {path} has no private key with its certificate")
    others = {other.certificate.subject: other.certificate for other in store.additional_certs}
    chain = [store.cert.certificate]
    while (issuer := others.pop(chain[-1].issuer, None)) is not None:
        chain.append(issuer)
    entries = [PemEntry(CERTIFICATE, certificate.public_bytes(Encoding.DER)) for certificate in chain]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore(_in_pem(entries), key, None, _names(entries[0].content), file)


def _pkcs12_trust_store(path: str, store_type: str, password: Password | None) -> TrustStore:
    """Without a password neither the checksum is verified nor anything encrypted read, as in Java."""
    file, content = _pkcs12_file(path, store_type)
    if password is not None:
        _pkcs12(path, store_type, content, password)
    from odradek.broker.security.tls.pkcs12_decryption import UnknownEncryption
    from odradek.broker.security.tls.pkcs12_entries import trusted_certificates

    try:
        trusted = trusted_certificates(content, None if password is None else password.value)
    except (DerError, UnknownEncryption) as error:
        failed = f"Failed to load SSL keystore {path} of type {store_type}"
        raise ConfigError(f"{failed}: {error}. {_conversion(path)}") from None
    if not trusted:
        logger.warning(
            "The SSL truststore %s has no trusted certificate, so that no peer is trusted. Java only trusts those that "
            "keytool -importcert or openssl pkcs12 -jdktrust anyExtendedKeyUsage has marked, and those of keys.",
            path,
        )
    return TrustStore(_in_pem([PemEntry(CERTIFICATE, certificate) for certificate in trusted]), file)


def _pkcs12_file(path: str, store_type: str) -> tuple[StoreFile, bytes]:
    failed = f"Failed to load SSL keystore {path} of type {store_type}"
    if store_type.upper() not in _PKCS12_TYPES:
        raise ConfigError(f"{failed}: the types PEM and PKCS12 are read")
    file, content = _read(path, store_type)
    if content[:4] in (_JKS_MAGIC, _JCEKS_MAGIC):
        raise ConfigError(f"{failed}: only a JVM reads this format. {_conversion(path)}")
    return file, content


def _pkcs12(path: str, store_type: str, content: bytes, password: Password) -> PKCS12KeyAndCertificates:
    failed = f"Failed to load SSL keystore {path} of type {store_type}"
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{failed}: PKCS12 needs the package cryptography (pip install 'odradek[passwords]'); PEM does not"
        ) from None
    try:
        return load_pkcs12(content, password.value.encode())
    except ValueError:
        raise ConfigError(f"{failed}: it is no PKCS12 store, or its password is another one") from None


def _conversion(path: str) -> str:
    return (
        f"Convert it with: keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12, "
        f"then set the location to {path}.p12 and the type to PKCS12"
    )


if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
