from __future__ import annotations

import re

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import authorizer_zookeeper_settings, zookeeper_settings
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls

TLS = {"zookeeper.ssl.client.enable": "true"}
SASL = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": "canary"}


def settings(keys: dict[str, str]) -> ZooKeeperSettings:
    return zookeeper_settings(BrokerConfig({"zookeeper.connect": "zk:2181", **keys}), None)


def test_the_session_timeout_is_the_default_of_the_connection_timeout() -> None:
    plain = settings({})
    assert plain == ZooKeeperSettings(hosts="zk:2181")
    assert (plain.session_timeout_ms, plain.connection_timeout_ms) == (18_000, 18_000)
    assert settings({"zookeeper.session.timeout.ms": "6000"}).connection_timeout_ms == 6_000


def test_times_and_limits() -> None:
    assert settings(
        {
            "zookeeper.connect": "a:1,b:2/kafka",
            "zookeeper.connection.timeout.ms": "1",
            "zookeeper.session.timeout.ms": "2",
            "zookeeper.max.in.flight.requests": "3",
        }
    ) == ZooKeeperSettings(
        hosts="a:1,b:2", chroot="/kafka", connection_timeout_ms=1, session_timeout_ms=2, max_in_flight_requests=3
    )


def test_a_malformed_connection_string_is_refused_by_name() -> None:
    with pytest.raises(StartupError, match=r"zookeeper\.connect=,/kafka: expected host:port"):
        settings({"zookeeper.connect": ",/kafka"})


def test_tls_is_off_whatever_else_is_set() -> None:
    assert settings({"zookeeper.ssl.keystore.location": "/k.jks"}).tls is None


def test_tls_with_kafkas_defaults() -> None:
    assert settings(TLS).tls == ZooKeeperTls()


def test_all_of_tls() -> None:
    keys = {
        "keystore.location": "/k.pem",
        "keystore.password": "secret",
        "truststore.location": "/t",
        "truststore.type": "pem",
        "protocol": "TLSv1.1",
        "enabled.protocols": "TLSv1.2,TLSv1.3",
        "cipher.suites": "A,B",
        "endpoint.identification.algorithm": "",
        "crl.enable": "true",
    }
    assert settings({**TLS, **{f"zookeeper.ssl.{key}": value for key, value in keys.items()}}).tls == ZooKeeperTls(
        protocols=("TLSv1.2", "TLSv1.3"),
        cipher_suites=("A", "B"),
        key_and_certificates="/k.pem",
        key_password="secret",
        trusted_certificates="/t",
        verifies_host_name=False,
        checks_revocation=True,
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("keystore.location", "/k.jks", r"zookeeper\.ssl\.keystore\.location=/k\.jks is a store of type JKS"),
        ("truststore.location", "/t.p12", r"zookeeper\.ssl\.truststore\.location=/t\.p12 is a store of type PKCS12"),
        ("truststore.location", "/t.store", r"set zookeeper\.ssl\.truststore\.type=PEM"),
        ("ocsp.enable", "true", r"zookeeper\.ssl\.ocsp\.enable"),
        ("endpoint.identification.algorithm", "LDAPS", r"either HTTPS or empty"),
    ],
)
def test_what_is_not_there_is_refused_by_name(key: str, value: str, reason: str) -> None:
    with pytest.raises(StartupError, match=reason):
        settings({**TLS, f"zookeeper.ssl.{key}": value})


def test_the_type_counts_more_than_the_name() -> None:
    keys = {**TLS, "zookeeper.ssl.keystore.location": "/k.pem", "zookeeper.ssl.keystore.type": "JKS"}
    with pytest.raises(StartupError, match="of type JKS"):
        settings(keys)
    tls = settings({**keys, "zookeeper.ssl.keystore.location": "/k.jks", "zookeeper.ssl.keystore.type": "PEM"}).tls
    assert tls is not None
    assert tls.key_and_certificates == "/k.jks"


def test_acls_need_an_authentication() -> None:
    owned = {"zookeeper.set.acl": "true"}
    for nobody in ({}, TLS):
        with pytest.raises(StartupError, match=r"zookeeper\.set\.acl is true"):
            settings({**owned, **nobody})
    assert zookeeper_settings(BrokerConfig({"zookeeper.connect": "zk:2181", **owned}), SASL).sets_acl
    assert settings({**owned, **TLS, "zookeeper.ssl.keystore.location": "/k.pem"}).sets_acl


def of_acls(keys: dict[str, str]) -> ZooKeeperSettings | None:
    return authorizer_zookeeper_settings(BrokerConfig({"zookeeper.connect": "zk:2181/kafka", **keys}), None)


def test_the_login_is_the_brokers() -> None:
    config = BrokerConfig({"zookeeper.connect": "zk:2181", "authorizer.zookeeper.url": "acl:1"})
    assert zookeeper_settings(config, SASL).sasl == SASL
    own = authorizer_zookeeper_settings(config, SASL)
    assert own is not None
    assert own.sasl == SASL
    assert "canary" not in repr(own)


def test_acls_are_in_the_metadata_tree_unless_a_key_of_theirs_is_set() -> None:
    assert of_acls({"zookeeper.session.timeout.ms": "6000"}) is None
    assert of_acls({"authorizer.zookeeper.session.timeout.ms": " 5000 "}) == ZooKeeperSettings(
        hosts="zk:2181", chroot="/kafka", session_timeout_ms=5000
    )


def test_settings_of_the_zookeeper_of_acls_come_before_those_of_the_broker() -> None:
    broker = {
        **TLS,
        "zookeeper.session.timeout.ms": "2",
        "zookeeper.ssl.truststore.location": "/t.pem",
        "zookeeper.ssl.keystore.location": "/k.pem",
        "zookeeper.ssl.keystore.password": "one",
    }
    own = {
        "url": " acl:1/deep ",
        "max.in.flight.requests": "4",
        "session.timeout.ms": "7",
        "ssl.keystore.location": "/own.pem",
        "ssl.keystore.password": "two",
        "ssl.endpoint.identification.algorithm": "",
    }
    tls = ZooKeeperTls(
        key_and_certificates="/own.pem", key_password="two", trusted_certificates="/t.pem", verifies_host_name=False
    )
    assert of_acls(broker | {f"authorizer.zookeeper.{key}": text for key, text in own.items()}) == ZooKeeperSettings(
        hosts="acl:1",
        chroot="/deep",
        session_timeout_ms=7,
        connection_timeout_ms=2,
        max_in_flight_requests=4,
        tls=tls,
    )
    assert of_acls(TLS | {"authorizer.zookeeper.ssl.client.enable": "false"}) == ZooKeeperSettings(
        hosts="zk:2181", chroot="/kafka"
    )


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("session.timeout.ms", "soon", "authorizer.zookeeper.session.timeout.ms: Invalid value soon"),
        ("url", ",/kafka", "authorizer.zookeeper.url=,/kafka: expected host:port"),
        ("ssl.client.enable", "perhaps", "authorizer.zookeeper.ssl.client.enable: Invalid value perhaps"),
    ],
)
def test_what_is_wrong_with_the_zookeeper_of_acls_is_named(key: str, text: str, message: str) -> None:
    with pytest.raises(StartupError, match=f"The ZooKeeper of AclAuthorizer.*{re.escape(message)}"):
        of_acls({f"authorizer.zookeeper.{key}": text})


def test_a_single_node_may_have_its_acls_in_a_zookeeper() -> None:
    config = BrokerConfig({"authorizer.zookeeper.url": "acl:1"})
    assert authorizer_zookeeper_settings(config, None) == ZooKeeperSettings(hosts="acl:1")
    assert config.unknown_keys == ["authorizer.zookeeper.url"], "keys of AclAuthorizer alone"
