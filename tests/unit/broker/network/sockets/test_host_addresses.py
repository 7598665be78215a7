from __future__ import annotations

import pytest

from odradek.broker.network.sockets import host_addresses
from odradek.broker.network.sockets.host_addresses import HostAddresses, UnknownHostError, literal_address
from tests.support.disks.logs import DeferredIoPool


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("", "127.0.0.1"),
        ("one.example", None),
        ("192.0.2", None),
    ],
)
def test_an_address_needs_no_name_server(host: str, address: str | None) -> None:
    assert literal_address(host) == address


def test_names_are_resolved_one_at_a_time_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def address_of(host: str) -> str:
        if host == "no.example":
            raise UnknownHostError(host)
        return f"address of {host}"

    monkeypatch.setattr(host_addresses, "address_of", address_of)
    pool = DeferredIoPool()
    addresses = HostAddresses(pool)
    found: list[str] = []

    def done(result: str | OSError) -> None:
        found.append(str(result))
        if len(found) == 2:
            addresses.resolve("from.done", lambda result: found.append(str(result)))

    for host in ("192.0.2.1", "no.example", "two.example", "192.0.2.2"):
        addresses.resolve(host, done)
    assert (found, len(pool.pending)) == (["192.0.2.1"], 1)
    pool.run_one()
    assert (found[1:], len(pool.pending)) == (["no.example"], 1)
    pool.run_one()
    assert (found[2:], len(pool.pending)) == (["address of two.example", "192.0.2.2"], 1)
    pool.run_one()
    assert (found[4:], len(pool.pending)) == (["address of from.done"], 0)
