from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.connection_quotas import ConnectionQuotas
from tests.support.disks.logs import DeferredIoPool

AF_INET, AF_INET6 = 2, 10
"""As on Linux."""


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


def resolve(monkeypatch: pytest.MonkeyPatch, addresses: dict[str, tuple[str, ...]]) -> list[str]:
    """Have these hosts have these addresses, and others none. Answers the hosts that are looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: None, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        if host not in addresses:
            raise OSError(-2, "Name or service not known")
        return [(AF_INET6 if ":" in address else AF_INET, 1, 6, "", (address, 0)) for address in addresses[host]]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    return asked


def test_host_name_stands_for_its_first_address_and_for_ipv4_first(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"one.example": ("2001:db8::1", "192.0.2.1", "192.0.2.2"), "six.example": ("2001:db8::6",)}
    asked = resolve(monkeypatch, addresses)
    limited = quotas(max_connections_per_ip="9", max_connections_per_ip_overrides="one.example:1,six.example:2")
    assert asked == ["one.example", "six.example"]
    hosts = ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::6")
    assert [limited.limit_of(host) for host in hosts] == [1, 9, 9, 2]


def test_addresses_are_compared_as_addresses() -> None:
    limited = quotas(max_connections_per_ip_overrides="0:0:0:0:0:0:0:1:1,::ffff:192.0.2.1:2,:3")
    assert [limited.limit_of(host) for host in ("::1", "192.0.2.1", "127.0.0.1")] == [1, 2, 3]


@pytest.mark.parametrize("host", ["no.example", "x" * 64 + ".example"])
def test_unknown_host_name_refuses_the_start(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    if host == "no.example":
        resolve(monkeypatch, {})
    with pytest.raises(StartupError, match=f"max.connections.per.ip.overrides: {host}: "):
        quotas(max_connections_per_ip_overrides=f"{host}:1")


def test_overrides_that_change_are_resolved_in_the_pool(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    addresses = {"one.example": ("192.0.2.1",), "two.example": ("192.0.2.2",)}
    asked = resolve(monkeypatch, addresses)
    config = BrokerConfig({"max.connections.per.ip": "9", "max.connections.per.ip.overrides": "one.example:1"})
    limited, pool = ConnectionQuotas(config), DeferredIoPool()

    def limits() -> list[int]:
        return [limited.limit_of(host) for host in ("192.0.2.1", "192.0.2.2")]

    limited.resolve_overrides(pool)
    assert not pool.pending, "nothing has changed"
    config.max_connections_per_ip_overrides = {"two.example": 2}
    limited.resolve_overrides(pool)
    assert (asked, limits()) == (["one.example"], [1, 9])
    pool.run_one()
    assert limits() == [9, 2]
    config.max_connections_per_ip_overrides = {"no.example": 3}
    limited.resolve_overrides(pool)
    pool.run_one()
    assert limits() == [9, 2]
    assert "no.example: Name or service not known; the limits are what they were" in caplog.text
    config.max_connections_per_ip_overrides = {"one.example": 4}
    limited.resolve_overrides(pool)
    config.max_connections_per_ip_overrides = {"two.example": 5}
    limited.resolve_overrides(pool)
    pool.run_all()
    assert limits() == [9, 5]


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
