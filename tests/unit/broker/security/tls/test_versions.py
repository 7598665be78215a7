from __future__ import annotations

import ssl

import pytest

from odradek.broker.security.tls.versions import cipher_string, versions
from odradek.storage.config.config_def import ConfigError

V1_1, V1_2, V1_3 = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
OLD = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
NEW = ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")


@pytest.mark.parametrize(
    ("protocol", "enabled", "suites", "expected"),
    [
        ("TLSv1.3", ("TLSv1.2", "TLSv1.3"), (), (V1_2, V1_3)),
        ("TLSv1.2", ("TLSv1.3",), (), (V1_3, V1_3)),
        ("TLSv1.3", ("TLSv1.2",), (), (V1_2, V1_2)),
        ("TLSv1.3", ("SSLv2Hello", "TLSv1.1", "TLSv1.2"), (), (V1_1, V1_2)),
        ("TLSv1.3", (), (), (V1_2, V1_3)),
        ("TLS", (), (), (V1_2, V1_3)),
        ("TLSv1.2", (), (), (V1_2, V1_2)),
        ("TLSv1.1", (), (), (V1_1, V1_1)),
        ("TLSv1.3", ("TLSv1.2", "TLSv1.3"), (OLD,), (V1_2, V1_2)),
        ("TLSv1.3", ("TLSv1.2", "TLSv1.3"), NEW, (V1_3, V1_3)),
        ("TLSv1.3", ("TLSv1.2", "TLSv1.3"), (OLD, *NEW), (V1_2, V1_3)),
    ],
)
def test_versions(
    protocol: str, enabled: tuple[str, ...], suites: tuple[str, ...], expected: tuple[ssl.TLSVersion, ssl.TLSVersion]
) -> None:
    assert versions(protocol, enabled, suites) == expected


@pytest.mark.parametrize(
    ("protocol", "enabled", "suites", "message"),
    [
        ("SSLv3x", (), (), "Invalid value SSLv3x for configuration ssl.protocol"),
        ("TLS", ("SSLv3",), (), "Invalid value SSLv3 for configuration ssl.enabled.protocols"),
        ("TLS", ("TLSv1.1", "TLSv1.3"), (), "without a gap"),
        ("TLS", ("TLSv1.3",), (OLD,), "none of them belongs to an enabled protocol"),
    ],
)
def test_versions_that_are_refused(
    protocol: str, enabled: tuple[str, ...], suites: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        versions(protocol, enabled, suites)


def test_suites() -> None:
    assert cipher_string(()) is None
    assert cipher_string(NEW) is None
    assert cipher_string((OLD, *NEW)) == "ECDHE-RSA-AES256-GCM-SHA384"
    with pytest.raises(ConfigError, match=r"cannot choose among the suites of TLS 1\.3"):
        cipher_string(NEW[:1])
