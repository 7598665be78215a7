from __future__ import annotations

import asyncio
import logging

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners import socket_server
from odradek.broker.network.requests.large_requests import ConnectionWork
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader
from tests.support.async_test import async_test
from tests.support.in_process.connections.listening import HOST, TWO_LISTENERS, Listening, started

# -- opening


@async_test
async def test_open_returns_the_ports_and_accepts_no_client_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Listening(monkeypatch, **TWO_LISTENERS)
    end_points = await network.server.open()
    assert [(point.listener_name, point.port) for point in end_points] == [("CLIENTS", 40_010), ("BROKERS", 40_011)]
    assert network.server.end_points == end_points
    assert network.readers == {}
    network.server.start_accepting()
    assert set(network.readers) == {10, 11}


@async_test
async def test_open_opens_all_listeners_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Listening(monkeypatch, **TWO_LISTENERS)
    network.refuse_from = 1
    with pytest.raises(StartupError):
        await network.server.open()
    assert [listening.fileno() for listening in network.listening] == [-1]
    assert network.server.end_points == ()
    network.server.start_accepting()
    assert network.readers == {}


# -- accepting


@async_test
async def test_accepted_client_becomes_a_connection_of_its_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, socket_send_buffer_bytes="5000")
    accepted = network.knock(listener=1)
    await network.turn()
    (connection,) = network.server.connections
    assert (connection.listener_name, connection.client_host) == ("BROKERS", HOST)
    assert not accepted.is_blocking
    names = socket_server.socket
    assert accepted.options == {
        (names.IPPROTO_TCP, names.TCP_NODELAY): 1,
        (names.SOL_SOCKET, names.SO_KEEPALIVE): 1,
        (names.SOL_SOCKET, names.SO_SNDBUF): 5000,
    }


@async_test
async def test_send_buffer_can_be_left_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, socket_send_buffer_bytes="-1")
    accepted = network.knock()
    await network.turn()
    assert (socket_server.socket.SOL_SOCKET, socket_server.socket.SO_SNDBUF) not in accepted.options


@async_test
async def test_client_that_is_gone_before_it_is_served_is_counted_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = await started(monkeypatch, max_connections_per_ip="1")
    accepted = network.knock(fails=True)
    await network.turn()
    assert accepted.is_closed
    assert network.server.connections == {}
    assert network.server.closed_by_reason == {CloseReason.CONNECTION_FAILED: 1}
    assert caplog.text == ""
    network.knock()  # its place is free again
    await network.turn()
    assert len(network.server.connections) == 1


@async_test
async def test_client_that_has_reset_its_connection_keeps_the_address_of_the_accept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its requests without answers are still applied: access by address must not see another one."""
    network = await started(monkeypatch)
    network.peername = None
    network.knock("192.0.2.9")
    await network.turn()
    assert [found.client_host for found in network.server.connections] == ["192.0.2.9"]


# -- limits


@async_test
async def test_address_with_too_many_connections_is_turned_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = await started(monkeypatch, max_connections_per_ip="1")
    network.knock(HOST)
    mapped = network.knock(f"::ffff:{HOST}")  # the same one, on a socket that serves IPv6 too
    network.knock("192.0.2.2")
    await network.turn()
    assert mapped.is_closed
    assert list(network.server.connections.values()) == [HOST, "192.0.2.2"]
    assert network.server.closed_by_reason == {CloseReason.TOO_MANY_CONNECTIONS: 1}
    assert f"Rejected connection from /{HOST}, address already has the configured maximum of 1" in caplog.text


@async_test
async def test_full_broker_lets_clients_wait_until_one_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, max_connections="1")
    waiting = [network.knock() for _ in range(2)]
    await network.turn()
    assert len(network.server.connections) == 1
    assert not waiting[1].is_closed
    assert network.readers == {}  # or the poller would wake it all the time
    network.transports[0].abort()
    await network.turn()
    await network.turn()
    assert len(network.transports) == 2
    assert len(network.server.connections) == 1


def abandon_request(network: Listening) -> ConnectionWork:
    """The only open connection is closed while there is work on its request."""
    (connection,) = network.server.connections
    ctx = RequestContext(RequestHeader(ApiKey.OFFSET_FETCH, 8, 1), connection, 0, 1_000_000)
    connection.begin(ctx)
    assert ctx.work is not None
    ctx.work.begin()
    network.transports[-1].abort()
    return ctx.work


@async_test
async def test_requests_that_outlive_their_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends a long request, resets the connection and connects again queues no more than that."""
    network = await started(monkeypatch, **TWO_LISTENERS, queued_max_requests="2")
    network.knock()
    await network.turn()
    first = abandon_request(network)
    await network.turn()
    network.knock()
    await network.turn()
    assert len(network.transports) == 2, "below the limit"
    second = abandon_request(network)
    await network.turn()
    waiting = network.knock()
    network.knock(listener=1)
    await network.turn()
    assert [found.listener_name for found in network.server.connections] == ["BROKERS"]
    assert not waiting.is_closed
    first.end()
    await network.turn()
    assert [found.listener_name for found in network.server.connections] == ["BROKERS", "CLIENTS"]
    second.end()


@async_test
async def test_clients_that_wait_are_let_in_when_the_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, max_connections="1")
    for _ in range(3):
        network.knock()
    await network.turn()
    assert len(network.server.connections) == 1
    network.config.apply_dynamic(broker={"max.connections": "2"}, default={})
    network.server.limits_changed()
    await network.turn()
    assert len(network.server.connections) == 2
    assert network.readers == {}
    network.config.apply_dynamic(broker={"max.connections": "9"}, default={})
    network.server.limits_changed()
    await network.turn()
    assert len(network.server.connections) == 3


@async_test
async def test_those_that_were_silent_for_longest_are_closed_when_the_limit_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS)
    for listener in (1, 0, 0, 0):
        network.knock(listener=listener)
        await network.turn()
        network.clock.advance(10)
    connections = list(network.server.connections)
    connections[1].data_received(b"\0")
    network.config.apply_dynamic(broker={"max.connections": "2"}, default={})
    network.server.limits_changed()
    network.server.limits_changed()  # those that are being closed are not counted twice
    await network.turn()
    assert list(network.server.connections) == connections[:2]


@async_test
async def test_a_client_in_its_handshake_is_younger_than_one_that_was_silent_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, max_connections="2")
    network.knock()
    await network.turn()
    network.clock.advance(10)
    network.gate = asyncio.Event()
    network.knock()
    await network.turn()
    silent, shaking = network.server.connections
    network.knock(listener=1)
    await network.turn()
    assert silent not in network.server.connections
    assert shaking in network.server.connections


@async_test
async def test_broker_that_comes_to_a_full_one_takes_the_place_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, max_connections="2")
    for listener in (0, 0, 1):
        network.knock(listener=listener)
        await network.turn()
        network.clock.advance(10)
    await network.turn()
    assert [found.listener_name for found in network.server.connections] == ["CLIENTS", "BROKERS"]
    assert [transport.is_aborted for transport in network.transports] == [True, False, False]


@async_test
async def test_broker_takes_the_place_of_a_client_that_is_being_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, max_connections="2")
    for _ in range(2):
        network.knock()
        await network.turn()
        network.clock.advance(10)
    silent, closing = network.server.connections
    closing.abort(CloseReason.INVALID_FRAME)  # the loop closes it in its next turn
    network.knock(listener=1)
    await network.turn()
    assert silent in network.server.connections
    assert network.server.closed_by_reason == {CloseReason.INVALID_FRAME: 1}


@async_test
async def test_client_that_is_closed_before_the_loop_connects_it_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, max_connections="1")
    network.gate = asyncio.Event()
    network.knock(listener=0)
    await network.turn()
    network.knock(listener=1)  # takes the place of the client, which has no transport yet
    await network.turn()
    network.gate.set()
    await network.turn()
    assert [transport.is_aborted for transport in network.transports] == [True, False]
    assert [found.listener_name for found in network.server.connections] == ["BROKERS"]
    assert network.server.closed_by_reason == {CloseReason.TOO_MANY_CONNECTIONS: 1}


# -- the end of connections


@async_test
async def test_idle_connection_is_closed_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, connections_max_idle_ms="1000")
    network.knock()
    await network.turn()
    await network.advance(999)
    (connection,) = network.server.connections
    connection.data_received(b"\0")  # the first byte of a frame: somebody is there
    await network.advance(1)
    await network.advance(998)
    assert not network.transports[0].is_aborted
    await network.advance(1)
    assert network.transports[0].is_aborted
    assert network.server.closed_by_reason == {CloseReason.IDLE: 1}


@async_test
async def test_negative_limit_lets_connections_idle_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, connections_max_idle_ms="-1")
    network.knock()
    await network.turn()
    assert network.timer.size == 0


@pytest.mark.parametrize(
    ("reason", "detail", "line"),
    [
        (CloseReason.CLIENT_CLOSED, "", None),
        (CloseReason.CONNECTION_FAILED, "reset by peer", None),
        (CloseReason.IDLE, "", None),
        (CloseReason.SHUTDOWN, "", None),
        (CloseReason.INVALID_FRAME, "TLS", "Closed connection from 192.0.2.1:50000: invalid frame: TLS"),
        (CloseReason.NOT_AUTHENTICATED, "", "Closed connection from 192.0.2.1:50000: not authenticated"),
    ],
)
@async_test
async def test_unexpected_close_reasons_are_logged(
    reason: CloseReason,
    detail: str,
    line: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = await started(monkeypatch)
    network.knock()
    await network.turn()
    (connection,) = network.server.connections
    with caplog.at_level(logging.INFO, "odradek.broker.network.listeners.socket_server"):
        connection.abort(reason, detail)
        await network.turn()
    assert network.server.closed_by_reason == {reason: 1}
    assert caplog.messages == ([] if line is None else [line])


# -- closing


@async_test
async def test_stop_accepting_leaves_connections_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.knock()
    await network.turn()
    network.server.stop_accepting()
    assert network.readers == {}
    assert network.listening[0].fileno() == -1
    assert len(network.server.connections) == 1


@async_test
async def test_close_returns_when_the_last_connection_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    for _ in range(3):
        network.knock()
    await network.turn()
    await network.server.close()
    assert all(transport.is_aborted for transport in network.transports)
    assert network.server.connections == {}
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 3}
    assert network.readers == {}


@async_test
async def test_close_without_connections_returns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    await network.server.close()
    await network.server.close()


@async_test
async def test_close_drops_a_client_whose_handshake_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.knock()
    network.readers[10]()  # accepted, and in the same turn of the loop the server closes
    await network.server.close()
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 1}


@async_test
async def test_close_drops_a_client_in_its_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.gate = asyncio.Event()
    network.knock()
    await network.turn()
    closing = asyncio.ensure_future(network.server.close())
    await network.turn()
    assert not closing.done()
    network.gate.set()
    await closing
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 1}
