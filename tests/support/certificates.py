"""Certificates for tests: authorities that sign certificates of brokers and clients, as PEM and PKCS12 files.

Keys are on the curve P-256, which takes no time to make.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

DAY = datetime.timedelta(days=1)
PASSWORD = "store-secret"
LOCAL = ("localhost", "127.0.0.1")
KDF_ROUNDS = 1000
"""Of the keys that encrypt a PKCS12 file. With the 20,000 of `BestAvailableEncryption`, a new JVM takes 1.7 s more of
processor time to change its key store."""


@dataclass(frozen=True)
class Identity:
    """A key with its certificate, and the authority's."""

    key: PrivateKey
    certificate: x509.Certificate
    authority: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate_pem + self.authority.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """One file with the key and the chain, as a key store of type PEM has them."""
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"kafka", self.key, self.certificate, [self.authority], store_encryption(password)
            )
        )
        return path


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "Test CA", *, days: int = 30, began_days_ago: int = 1) -> None:
        """Its certificate is good for `days`; negative: expired."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = (
            _builder(self._name, self._name, self._key.public_key(), days, began_days_ago)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """A trust store that Java reads, too: it marks the certificate as trusted."""
        certificate = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        path.write_bytes(pkcs12.serialize_java_truststore([certificate], store_encryption(password)))
        return path

    def issue(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = LOCAL,
        organization: str | None = None,
        days: int = 30,
        began_days_ago: int = 1,
        key: PrivateKey | None = None,
    ) -> Identity:
        """A certificate for `CN=name`, and `O=organization`, which is good for `days`; negative: expired."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if organization is not None:
            parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        builder = _builder(x509.Name(parts), self._name, key.public_key(), days, began_days_ago).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        return Identity(key, builder.sign(self._key, hashes.SHA256()), self.certificate)

    def revoke(self, *revoked: Identity, days: int = 30) -> str:
        """The list of revoked certificates in PEM, which is good for `days`; negative: it has expired."""
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(now - 40 * DAY).next_update(now + days * DAY)
        for identity in revoked:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(identity.certificate.serial_number)
                .revocation_date(now - DAY)
                .build()
            )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def one_line(pem: str) -> str:
    """PEM as in a properties file: spaces instead of ends of lines."""
    return " ".join(pem.split("\n")).strip()


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    days: int = 30,
    began_days_ago: int = 1,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - began_days_ago * DAY)
        .not_valid_after(now + days * DAY)
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


def store_encryption(password: str = PASSWORD) -> KeySerializationEncryption:
    """The algorithms of `BestAvailableEncryption`."""
    builder = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(KDF_ROUNDS).hmac_hash(hashes.SHA256())
    return builder.key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC).build(password.encode())
