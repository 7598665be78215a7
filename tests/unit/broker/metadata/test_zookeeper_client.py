from __future__ import annotations

import pytest

from odradek.broker.config.zookeeper_config import SASL_PASSWORD, SASL_USERNAME
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metadata.zookeeper_client import client_settings
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls

TLS = {"zookeeper.ssl.client.enable": "true"}
CERTIFICATE = {**TLS, "zookeeper.ssl.keystore.location": "/k.pem"}
LOGIN = {SASL_USERNAME: "kafka", SASL_PASSWORD: "secret"}


def test_nothing_but_an_address() -> None:
    assert client_settings("a:1,b:2/kafka", {}) == ZooKeeperSettings(hosts="a:1,b:2", chroot="/kafka")


def test_only_the_keys_of_the_connection_count() -> None:
    others = {"zookeeper.connect": "other:1", "zookeeper.session.timeout.ms": "7", "broker.id": "many"}
    expected = ZooKeeperSettings(hosts="zk:1", session_timeout_ms=30, connection_timeout_ms=30, tls=ZooKeeperTls())
    assert client_settings("zk:1", {**others, **TLS}, 30) == expected


@pytest.mark.parametrize(("keys", "is_owner"), [({}, False), (TLS, False), (CERTIFICATE, True), (LOGIN, True)])
def test_who_authenticates_owns_what_it_makes(keys: dict[str, str], is_owner: bool) -> None:
    assert client_settings("zk:1", keys).sets_acl is is_owner


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(StartupError, match="or neither"):
        client_settings("zk:1", {SASL_USERNAME: "kafka"})
