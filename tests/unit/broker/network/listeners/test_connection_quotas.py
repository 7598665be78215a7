from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners.connection_quotas import ConnectionPriorities, ConnectionQuotas
from odradek.storage.disk.ports import InlineIoPool, IoPool
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool

PLAINTEXT = "PLAINTEXT"
AF_INET, AF_INET6 = 2, 10
"""As on Linux."""


def quotas(io_pool: IoPool | None = None, **settings: str) -> ConnectionQuotas:
    config = BrokerConfig({key.replace("__", ".").replace("_", "."): value for key, value in settings.items()})
    limited = ConnectionQuotas(config, ManualClock(), io_pool or InlineIoPool())
    if io_pool is None:
        asyncio.run(limited.start())
    return limited


def acquired(limited: ConnectionQuotas, host: str, listener_name: str = PLAINTEXT) -> bool:
    return limited.acquire(host, listener_name)


def test_address_has_as_many_connections_as_allowed_and_no_more() -> None:
    limited = quotas(max_connections_per_ip="2")
    assert acquired(limited, "a")
    assert acquired(limited, "a")
    assert not acquired(limited, "a")
    assert acquired(limited, "b")
    limited.release("a", PLAINTEXT)
    assert acquired(limited, "a")
    assert not acquired(limited, "a")
    assert limited.total == 3


def test_override_takes_the_place_of_the_general_limit() -> None:
    limited = quotas(max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:1,::1:2")
    assert not acquired(limited, "192.0.2.1")
    assert acquired(limited, "127.0.0.1")
    assert not acquired(limited, "127.0.0.1")
    assert acquired(limited, "::1")
    assert acquired(limited, "::1")
    assert not acquired(limited, "::1")


def test_a_long_list_of_addresses_is_resolved() -> None:
    overrides = ",".join(f"192.0.{number // 256}.{number % 256}:{number}" for number in range(1, 2_000))
    limited = quotas(max_connections_per_ip_overrides=overrides)
    assert limited.limit_of("192.0.7.207") == 1_999


class Overrides(dict[str, int]):
    """Counts the steps of its iterators."""

    steps = 0

    def __iter__(self) -> Iterator[str]:
        for host in super().__iter__():
            self.steps += 1
            yield host


def test_each_address_of_a_list_is_looked_at_once() -> None:
    config = BrokerConfig({})
    overrides = Overrides({f"192.0.{number // 256}.{number % 256}": number for number in range(1, 500)})
    config.max_connections_per_ip_overrides = overrides
    asyncio.run(ConnectionQuotas(config, ManualClock(), InlineIoPool()).start())
    assert overrides.steps == len(overrides)


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


@async_test
async def test_the_names_of_the_start_are_resolved_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolve(monkeypatch, {"one.example": ("192.0.2.1",), "two.example": ("192.0.2.2",)})
    pool = DeferredIoPool()
    limited = quotas(pool, max_connections_per_ip_overrides="one.example:1,two.example:2")
    starting = asyncio.ensure_future(limited.start())
    await asyncio.sleep(0)
    assert (asked, starting.done()) == ([], False)
    assert pool.run_all() == 2
    await starting
    assert [limited.limit_of(host) for host in ("192.0.2.1", "192.0.2.2")] == [1, 2]


@async_test
async def test_a_start_that_is_given_up_does_not_mind_late_names(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, {"one.example": ("192.0.2.1",)})
    pool = DeferredIoPool()
    starting = asyncio.ensure_future(quotas(pool, max_connections_per_ip_overrides="one.example:1").start())
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait([starting])
    assert pool.run_all() == 1


def test_overrides_that_change_are_resolved_in_the_pool(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    addresses = {"one.example": ("192.0.2.1",), "two.example": ("192.0.2.2",)}
    asked = resolve(monkeypatch, addresses)
    config = BrokerConfig({"max.connections.per.ip": "9"})
    pool = DeferredIoPool()
    limited = ConnectionQuotas(config, ManualClock(), pool)

    def limits() -> list[int]:
        return [limited.limit_of(host) for host in ("192.0.2.1", "192.0.2.2")]

    def change(**overrides: int) -> None:
        config.max_connections_per_ip_overrides = {f"{name}.example": limit for name, limit in overrides.items()}
        limited.overrides_changed()

    limited.overrides_changed()
    assert not pool.pending, "nothing has changed"
    change(one=1)
    pool.run_one()
    assert limits() == [1, 9]
    change(two=2)
    assert (asked, limits()) == (["one.example"], [1, 9])
    pool.run_one()
    assert limits() == [9, 2]
    change(one=7, no=3)
    pool.run_all()
    assert limits() == [9, 2]
    assert "no.example: Name or service not known; the limits stay as they were" in caplog.text
    change(no=3, one=4)
    change(two=5)
    pool.run_all()
    assert limits() == [9, 5]
    assert caplog.text.count("Name or service not known") == 1, "the names of old overrides do not matter"


def test_slow_name_servers_take_one_thread_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, {f"{name}.example": (f"192.0.2.{name}",) for name in range(1, 9)})
    config, pool = BrokerConfig({}), DeferredIoPool()
    limited = ConnectionQuotas(config, ManualClock(), pool)
    for limit in (1, 2, 3):
        config.max_connections_per_ip_overrides = {f"{name}.example": limit for name in range(1, 9)}
        limited.overrides_changed()
        limited.update_ip_connection_rate_quota(f"{limit}.example", 10)
        assert len(pool.pending) == 1
    while pool.pending:
        assert len(pool.pending) == 1
        pool.run_one()
    assert [limited.limit_of(f"192.0.2.{name}") for name in range(1, 9)] == [3] * 8


def test_full_broker_accepts_no_connection_until_one_closes() -> None:
    limited = quotas(max_connections="1")
    assert limited.may_accept(PLAINTEXT)
    acquired(limited, "a")
    assert not limited.may_accept(PLAINTEXT)
    limited.release("a", PLAINTEXT)
    assert limited.may_accept(PLAINTEXT)
    assert acquired(limited, "a")


TWO_LISTENERS = {
    "listeners": "PLAINTEXT://:1,CLIENTS://:2",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
}


def test_other_brokers_are_not_locked_out_by_clients() -> None:
    limited = quotas(max_connections="1", **TWO_LISTENERS)
    acquired(limited, "a", "CLIENTS")
    assert not limited.may_accept("CLIENTS")
    assert limited.may_accept(PLAINTEXT)


def test_a_listener_has_a_limit_of_its_own_also_that_of_other_brokers() -> None:
    own = {"listener.name.clients.max.connections": "1", "listener.name.plaintext.max.connections": "2"}
    limited = quotas(max_connections="4", **TWO_LISTENERS, **own)
    acquired(limited, "a", "CLIENTS")
    assert not limited.may_accept("CLIENTS")
    acquired(limited, "a", PLAINTEXT)
    assert limited.may_accept(PLAINTEXT)
    acquired(limited, "a", PLAINTEXT)
    assert not limited.may_accept(PLAINTEXT)
    limited.release("a", PLAINTEXT)
    assert limited.may_accept(PLAINTEXT)
    assert not limited.may_accept("CLIENTS")


@pytest.mark.parametrize("ip", ["192.0.2.1", "::ffff:192.0.2.1", "one.example", None])
def test_a_quota_of_connections_is_of_an_address_a_host_or_of_all(
    ip: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, {"one.example": ("192.0.2.1",)})
    limited = quotas()
    limited.update_ip_connection_rate_quota(ip, 0)
    assert limited.record_address("192.0.2.1", PLAINTEXT) == 1000
    assert limited.record_address("192.0.2.2", PLAINTEXT) == (1000 if ip is None else 0)
    limited.update_ip_connection_rate_quota(ip, None)
    assert limited.record_address("192.0.2.1", PLAINTEXT) == 0


def test_a_quota_of_a_host_without_an_address_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resolve(monkeypatch, {})
    quotas().update_ip_connection_rate_quota("no.example", 1)
    assert "Unable to resolve address no.example: Name or service not known" in caplog.text


# -- which connection makes room


@dataclass(eq=False)
class Client:
    last_active_ms: int
    is_broker: bool = False


class Clients(list[Client]):
    """Open connections. Counts how often they are looked through."""

    looks = 0

    def __iter__(self) -> Iterator[Client]:
        self.looks += 1
        return super().__iter__()


def closed_next(priorities: ConnectionPriorities[Client], clients: Clients) -> Client | None:
    found = priorities.lowest(clients, lambda client: client.is_broker)
    if found is not None:
        priorities.begins_to_close(found)
    return found


def test_a_flood_of_new_connections_does_not_look_through_all_for_each() -> None:
    clients = Clients(Client(active_ms) for active_ms in range(100, 0, -1))
    priorities = ConnectionPriorities[Client]()
    for active_ms in range(1, 51):
        found = closed_next(priorities, clients)
        assert found is not None
        assert found.last_active_ms == active_ms
        clients.remove(found)
        priorities.closed(found)
    assert clients.looks == 1


def test_clients_that_were_active_meanwhile_are_younger_than_the_others() -> None:
    clients = Clients(Client(active_ms) for active_ms in (1, 2, 3, 4))
    first, second, third, fourth = clients
    priorities = ConnectionPriorities[Client]()
    assert closed_next(priorities, clients) is first
    second.last_active_ms = 9
    clients.append(new := Client(8))
    assert [closed_next(priorities, clients) for _ in range(5)] == [third, fourth, new, second, None]


def test_clients_that_have_ended_are_closed_first_and_each_is_closed_once() -> None:
    broker, old, ended = clients = Clients([Client(1, is_broker=True), Client(2), Client(3)])
    priorities = ConnectionPriorities[Client]()
    priorities.client_ended(broker)
    priorities.client_ended(ended)
    assert closed_next(priorities, clients) is ended
    priorities.client_ended(ended)
    assert closed_next(priorities, clients) is old
    assert closed_next(priorities, clients) is None
    assert priorities.closing == {old, ended}
    for client in clients:
        priorities.closed(client)
    assert not priorities.closing
