"""Names of TLS cipher suites: Java's (IANA's) names, and OpenSSL's."""

from __future__ import annotations

from typing import Final

_CIPHERS: Final = (
    ("3DES_EDE_CBC", "DES-CBC3"),
    ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    ("CCM_8", "CCM8"),
    ("AES_", "AES"),
    ("CAMELLIA_", "CAMELLIA"),
    ("ARIA_", "ARIA"),
    ("_CBC", ""),
)
"""What OpenSSL writes otherwise, in the order of replacement."""


def openssl_name(suite: str) -> str:
    """OpenSSL's name: ECDHE-RSA-AES256-GCM-SHA384 for TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384; its own names stay."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not cipher:
        return suite
    for java, openssl in _CIPHERS:
        cipher = cipher.replace(java, openssl)
    if cipher.startswith("ARIA") and exchange.startswith("ECDHE"):
        exchange = exchange.replace("_RSA", "")  # ECDHE-ARIA128-GCM-SHA256
    return ("" if exchange == "RSA" else exchange.replace("_", "-") + "-") + cipher.replace("_", "-")
