"""TLS to ZooKeeper: Java's names of protocols and ciphers, keys and certificates in PEM files.

A key store is a PEM file with the private key and its certificate chain; a trust store is a PEM file with certificates
and, if revocation is checked, the revocation lists. Corresponds to ZooKeeper's ClientX509Util.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from odradek.controller.model.cipher_suites import openssl_name
from odradek.controller.tree.metadata_tree import TreeError

if TYPE_CHECKING:
    from odradek.controller.tree.zookeeper_settings import ZooKeeperTls

VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


class BadTls(TreeError):
    """The TLS settings cannot be used; the message says why."""

    def __init__(self, reason: str) -> None:
        super().__init__("", f"TLS to ZooKeeper: {reason}")


def tls_context(tls: ZooKeeperTls) -> ssl.SSLContext:
    """The context for one connection: the stores may be replaced while the broker runs. Raises BadTls.

    ZooKeeper: ClientCnxnSocketNetty.ZKClientPipelineFactory.initSSL.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    versions = sorted(_version(protocol) for protocol in tls.protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.check_hostname = tls.verifies_host_name
    # As in Java, each certificate of a trust store is an anchor, also one that another certificate has signed.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    # OpenSSL selects the ciphers of TLS 1.3.
    suites = [openssl_name(suite) for suite in tls.cipher_suites if "_WITH_" in suite or "-" in suite]
    if suites:
        try:
            context.set_ciphers(":".join(suites))
        except ssl.SSLError as error:
            raise BadTls(f"none of the cipher suites {', '.join(tls.cipher_suites)} is known") from error
    try:
        if tls.trusted_certificates is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(tls.trusted_certificates)
        if tls.key_and_certificates is not None:
            # A function, because OpenSSL would prompt for a missing password at the terminal.
            context.load_cert_chain(tls.key_and_certificates, password=lambda: tls.key_password or "")
    except (OSError, ValueError) as error:
        names = ", ".join(filter(None, (tls.trusted_certificates, tls.key_and_certificates)))
        raise BadTls(f"cannot use {names}: {error}") from error
    if tls.checks_revocation:
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN
    return context


def _version(protocol: str) -> ssl.TLSVersion:
    if protocol not in VERSIONS:
        raise BadTls(f"{protocol} is not one of the protocols {', '.join(VERSIONS)}")
    return VERSIONS[protocol]
