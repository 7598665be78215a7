"""Listeners that are opened and closed while the broker runs."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.sockets.close_reason import CloseReason
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool
from tests.support.in_process.connections.listening import Listening, started

A, B = "A://h:1", "B://h:2"
MAP = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"
SETTINGS = {
    "listeners": f"{A},{B}",
    "listener_security_protocol_map": MAP,
    "inter_broker_listener_name": "A",
}


async def change(network: Listening, listeners: str) -> None:
    network.config.apply_dynamic(broker={"listeners": listeners}, default={})
    await network.server.update_listeners()


def names(network: Listening) -> list[str]:
    return [end_point.listener_name for end_point in network.server.end_points]


@async_test
async def test_new_listener_is_opened_and_serves_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    await change(network, f"{A},{B},C://h:0")
    assert names(network) == ["A", "B", "C"]
    assert network.server.end_points[2].port == 40_012
    network.knock(listener=2)
    await network.turn()
    (connection,) = network.server.connections
    assert connection.listener_name == "C"


@async_test
async def test_listener_that_goes_takes_its_connections_along(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    for listener in (0, 1, 1):
        network.knock(listener=listener)
    await network.turn()
    await change(network, A)
    assert names(network) == ["A"]
    assert network.listening[1].fileno() == -1
    assert set(network.readers) == {10}
    assert [connection.listener_name for connection in network.server.connections] == ["A"]
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 2}


@async_test
async def test_listener_that_comes_back_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS, listener_name_b_max_connections="1")
    for listeners in (A, f"{A},B://h:0"):
        await change(network, listeners)
    network.knock(listener=2)
    await network.turn()
    assert [connection.listener_name for connection in network.server.connections] == ["B"]
    await change(network, A)
    assert not network.server.connections


@async_test
async def test_clients_in_their_handshake_are_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    network.gate = asyncio.Event()
    network.knock(listener=1)
    await network.turn()
    network.config.apply_dynamic(broker={"listeners": A}, default={})
    update = asyncio.ensure_future(network.server.update_listeners())
    await network.turn()
    assert not update.done()
    network.gate.set()
    await update
    assert not network.server.connections


@async_test
async def test_address_that_changes_under_the_same_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    before = network.server.end_points
    await change(network, f"{A},B://h:99")
    assert network.server.end_points == before
    assert len(network.listening) == 2


@async_test
async def test_listener_that_cannot_be_opened_is_tried_again_with_the_next_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = await started(monkeypatch, **SETTINGS)
    network.refuse_from = 2
    with pytest.raises(StartupError):
        await change(network, f"{A},C://h:3")
    assert names(network) == ["A"]
    network.refuse_from = None
    await change(network, f"{A},C://h:3")
    assert names(network) == ["A", "C"]


@async_test
async def test_new_listener_before_the_start_of_accepting_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Listening(monkeypatch, **SETTINGS)
    await network.server.open()
    await change(network, f"{A},{B},C://h:0")
    assert network.readers == {}
    network.server.start_accepting()
    assert set(network.readers) == {10, 11, 12}


@async_test
async def test_a_change_that_is_under_way_at_the_stop_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    network.knock(listener=1)
    await network.turn()
    network.config.apply_dynamic(broker={"listeners": f"{A},C://h:0"}, default={})
    update = asyncio.ensure_future(network.server.update_listeners())
    await asyncio.sleep(0)
    assert not update.done()
    network.server.stop_accepting()
    await update
    assert [listening.fileno() for listening in network.listening] == [-1, -1]
    assert network.readers == {}


@async_test
async def test_a_listener_that_is_opened_during_the_stop_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    network.server.io_pool = pool = DeferredIoPool()
    network.config.apply_dynamic(broker={"listeners": f"{A},{B},C://h:0"}, default={})
    update = asyncio.ensure_future(network.server.update_listeners())
    await asyncio.sleep(0)
    network.server.stop_accepting()
    pool.run_all()
    await update
    assert [listening.fileno() for listening in network.listening] == [-1, -1, -1]
    assert network.readers == {}


@async_test
async def test_stop_closes_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **SETTINGS)
    await change(network, f"{A},C://h:0")
    network.knock(listener=2)
    await network.turn()
    await network.server.close()
    assert [listening.fileno() for listening in network.listening] == [-1, -1, -1]
    assert not network.server.connections
