from __future__ import annotations

import pytest

from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls, hosts_and_chroot


@pytest.mark.parametrize(
    ("connect", "parts"),
    [
        ("h:1", ("h:1", "")),
        ("h:1/", ("h:1", "")),
        ("a:1, b:2/kafka", ("a:1,b:2", "/kafka")),
        ("a:1,b:2/kafka/one", ("a:1,b:2", "/kafka/one")),
        ("a:1,b:2,", ("a:1,b:2", "")),
        (" ,a:1,, b:2 /kafka", ("a:1,b:2", "/kafka")),
    ],
)
def test_the_chroot_comes_once_after_all_servers(connect: str, parts: tuple[str, str]) -> None:
    assert hosts_and_chroot(connect) == parts


@pytest.mark.parametrize(
    ("connect", "reason"),
    [
        ("", "expected host:port"),
        ("/kafka", "expected host:port"),
        (",,", "expected host:port"),
        ("a:1/kafka/", "must not end with /"),
        ("a:1//", "must not end with /"),
        ("a:1/x//y", "empty node name"),
        ("a:1/../y", "relative paths"),
        ("a:1/x\x00", "null character"),
    ],
)
def test_malformed_strings_are_refused(connect: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        hosts_and_chroot(connect)
    assert str(refused.value).startswith(f"{connect}: ")


def test_secrets_are_not_printed() -> None:
    tls = ZooKeeperTls(key_password="canary")
    assert "canary" not in repr(ZooKeeperSettings(hosts="h:1", tls=tls, sasl={"password": "canary"}))
