from __future__ import annotations

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.network.connection_quotas import ConnectionQuotas


def quotas(**settings: str) -> ConnectionQuotas:
    return ConnectionQuotas(BrokerConfig({key.replace("_", "."): value for key, value in settings.items()}))


def test_address_has_as_many_connections_as_allowed_and_no_more() -> None:
    limited = quotas(max_connections_per_ip="2")
    assert limited.acquire("a")
    assert limited.acquire("a")
    assert not limited.acquire("a")
    assert limited.acquire("b")
    limited.release("a")
    assert limited.acquire("a")
    assert not limited.acquire("a")
    assert limited.total == 3


def test_override_takes_the_place_of_the_general_limit() -> None:
    limited = quotas(max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:1,::1:2")
    assert not limited.acquire("192.0.2.1")
    assert limited.acquire("127.0.0.1")
    assert not limited.acquire("127.0.0.1")
    assert limited.acquire("::1")
    assert limited.acquire("::1")
    assert not limited.acquire("::1")


def test_full_broker_accepts_no_connection_until_one_closes() -> None:
    limited = quotas(max_connections="1")
    assert limited.may_accept("PLAINTEXT")
    limited.acquire("a")
    assert not limited.may_accept("PLAINTEXT")
    limited.release("a")
    assert limited.may_accept("PLAINTEXT")
    assert limited.acquire("a")


def test_other_brokers_are_not_locked_out_by_clients() -> None:
    limited = quotas(
        max_connections="1",
        listeners="PLAINTEXT://:1,CLIENTS://:2",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
    )
    limited.acquire("a")
    assert not limited.may_accept("CLIENTS")
    assert limited.may_accept("PLAINTEXT")
