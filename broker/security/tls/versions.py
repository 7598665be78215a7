"""Java's names of TLS versions and cipher suites, and what Python's `ssl` can restrict.

`ssl` sets a lowest and a highest version, so that versions with a gap between them are refused. It sets the suites of
TLS 1.2 and earlier; of TLS 1.3, all suites of the library can be negotiated or none.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.controller.model.cipher_suites import openssl_name
from odradek.storage.config.config_def import ConfigError

VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_ANY_VERSION: Final = frozenset({"TLS", "SSL", "Default"})
_NEWEST: Final = ssl.TLSVersion.TLSv1_3
_OLDEST_BY_DEFAULT: Final = ssl.TLSVersion.TLSv1_2
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
"""The suites of TLS 1.3 that OpenSSL offers by default."""


class Versions(NamedTuple):
    oldest: ssl.TLSVersion
    newest: ssl.TLSVersion


def versions(protocol: str, enabled: Sequence[str], suites: Sequence[str]) -> Versions:
    """The versions by `ssl.protocol`, `ssl.enabled.protocols` and `ssl.cipher.suites`. Raises: ConfigError.

    `ssl.protocol` counts only if no protocols are enabled by name, as in Java.
    """
    newest = _NEWEST
    if protocol not in _ANY_VERSION:
        newest = _version(protocol, "ssl.protocol")
    found = sorted({_version(name, "ssl.enabled.protocols") for name in enabled if name != "SSLv2Hello"})
    if not found:
        found = [min(_OLDEST_BY_DEFAULT, newest), newest]
    elif len(found) < sum(found[0] <= version <= found[-1] for version in VERSIONS.values()):
        raise ConfigError(f"ssl.enabled.protocols={','.join(enabled)}: versions must follow each other without a gap")
    if suites:
        found = [version for version in found if _has_suite(version, suites)]
        if not found:
            raise ConfigError(f"ssl.cipher.suites={','.join(suites)}: none of them belongs to an enabled protocol")
    return Versions(found[0], found[-1])


def cipher_string(suites: Sequence[str]) -> str | None:
    """OpenSSL's names of the suites before TLS 1.3; None if there are none. Raises: ConfigError."""
    of_1_3 = {suite for suite in suites if _is_1_3(suite)}
    if of_1_3 and not of_1_3 >= _TLS_1_3_SUITES:
        raise ConfigError(
            f"ssl.cipher.suites={','.join(suites)}: Python's ssl cannot choose among the suites of TLS 1.3. Name all "
            f"of {','.join(sorted(_TLS_1_3_SUITES))}, or none, which disables TLS 1.3"
        )
    return ":".join(openssl_name(suite) for suite in suites if not _is_1_3(suite)) or None


def _is_1_3(suite: str) -> bool:
    return suite.startswith("TLS_") and "_WITH_" not in suite and not suite.endswith("_SCSV")


def _has_suite(version: ssl.TLSVersion, suites: Sequence[str]) -> bool:
    return any(_is_1_3(suite) == (version is ssl.TLSVersion.TLSv1_3) for suite in suites)


def _version(name: str, key: str) -> ssl.TLSVersion:
    if name not in VERSIONS:
        raise ConfigError(f"Invalid value {name} for configuration {key}: {name} is not one of {', '.join(VERSIONS)}")
    return VERSIONS[name]
