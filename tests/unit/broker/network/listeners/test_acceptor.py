from __future__ import annotations

import errno
import math

import pytest

from odradek.broker.meters.connection_meters import ConnectionMeters
from odradek.broker.network.listeners.acceptor import ACCEPTS_PER_TURN
from odradek.broker.network.listeners.socket_server import RETRY_ACCEPT_MS
from odradek.broker.network.sockets.close_reason import CloseReason
from tests.support.async_test import async_test
from tests.support.in_process.connections.listening import HOST, TWO_LISTENERS, started

RATE = "max_connection_creation_rate"


@async_test
async def test_flood_of_clients_does_not_keep_the_loop_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    for _ in range(ACCEPTS_PER_TURN + 6):
        network.knock()
    await network.turn()
    assert len(network.server.connections) == ACCEPTS_PER_TURN
    await network.turn()
    assert len(network.server.connections) == ACCEPTS_PER_TURN + 6


@async_test
async def test_client_that_gave_up_does_not_hide_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.listening[0].queue.append(ConnectionAbortedError(errno.ECONNABORTED, "gave up"))
    network.knock()
    await network.turn()
    assert len(network.server.connections) == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
@async_test
async def test_exhausted_broker_pauses_instead_of_spinning(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = await started(monkeypatch)
    network.listening[0].queue.append(OSError(number, "exhausted"))
    network.knock()
    await network.turn()
    assert network.readers == {}
    assert "Cannot accept connections: exhausted" in caplog.text
    await network.advance(RETRY_ACCEPT_MS - 1)
    assert len(network.server.connections) == 0
    await network.advance(1)
    await network.turn()
    assert len(network.server.connections) == 1


@async_test
async def test_client_gets_none_of_the_descriptors_that_are_kept_for_the_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = await started(monkeypatch)
    last, beyond, later = (network.knock(number=number) for number in (999, 1000, 999))
    await network.turn()
    assert (last.is_closed, beyond.is_closed) == (False, True)
    assert "Cannot accept connections: the last descriptors are kept for the broker" in caplog.text
    assert network.readers == {}
    await network.advance(RETRY_ACCEPT_MS)
    assert not later.is_closed
    assert len(network.server.connections) == 2


@async_test
async def test_acceptor_that_pauses_when_the_server_closes_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.listening[0].queue.append(OSError(errno.EMFILE, "exhausted"))
    await network.turn()
    await network.server.close()
    await network.advance(RETRY_ACCEPT_MS)
    assert network.readers == {}


# -- rates


@async_test
async def test_a_listener_that_is_too_fast_waits_for_the_throttle_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS, **{f"listener_name_clients_{RATE}": "20"})
    for _ in range(202):
        network.knock()
    for _ in range(4):
        await network.turn()
    assert len(network.server.connections) == 200
    assert set(network.readers) == {11}, "the other listener accepts"
    await network.advance(49)
    assert len(network.server.connections) == 200
    await network.advance(1)
    assert len(network.server.connections) == 201
    assert set(network.readers) == {11}
    await network.advance(50)
    assert len(network.server.connections) == 202
    assert set(network.readers) == {10, 11}


@async_test
async def test_a_broker_that_is_too_fast_still_lets_brokers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {f"listener_name_brokers_{RATE}": "1000000"}
    network = await started(monkeypatch, **TWO_LISTENERS, **{RATE: "1"}, **own)
    for _ in range(50):
        network.knock(listener=0)
        network.knock(listener=1)
    await network.turn()
    names = [connection.listener_name for connection in network.server.connections]
    assert (names.count("CLIENTS"), names.count("BROKERS")) == (10, 50)


@async_test
async def test_after_the_throttle_time_a_connection_waits_for_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **{RATE: "0"})
    held = network.knock()
    later = network.knock()
    await network.turn()
    network.config.apply_dynamic(broker={RATE.replace("_", "."): "1000000", "max.connections": "0"}, default={})
    network.server.limits_changed()
    await network.advance(1000)
    await network.advance(1000)
    assert len(network.server.connections) == 0
    assert not held.is_closed
    assert network.readers == {}
    network.config.apply_dynamic(broker={RATE.replace("_", "."): "1000000", "max.connections": "1"}, default={})
    network.server.limits_changed()
    await network.turn()
    await network.turn()
    assert len(network.server.connections) == 1
    network.transports[0].abort()
    await network.turn()
    await network.turn()
    assert len(network.server.connections) == 1
    assert not later.is_closed


@pytest.mark.parametrize("limit", ["max_connections", "listener_name_plaintext_max_connections"])
@async_test
async def test_limits_that_are_raised_let_the_next_in(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **{limit: "1"})
    for _ in range(2):
        network.knock()
    await network.turn()
    assert len(network.server.connections) == 1
    network.config.apply_dynamic(broker={limit.replace("_", "."): "2"}, default={})
    network.server.limits_changed()
    await network.turn()
    assert len(network.server.connections) == 2


@async_test
async def test_an_address_that_is_too_fast_is_closed_late_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch)
    network.server.update_ip_connection_rate_quota(HOST, 1)
    flood = [network.knock() for _ in range(30)]
    other = network.knock("192.0.2.2")
    await network.turn()
    assert list(network.server.connections.values()) == [HOST] * 10 + ["192.0.2.2"]
    assert not any(accepted.is_closed for accepted in flood)
    assert network.server.closed_by_reason == {CloseReason.THROTTLED: 20}
    await network.advance(999)
    assert not any(accepted.is_closed for accepted in flood)
    await network.advance(1)
    assert [accepted.is_closed for accepted in flood] == [False] * 10 + [True] * 20
    assert not other.is_closed


@async_test
async def test_connections_and_their_delays_are_counted_while_metrics_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **TWO_LISTENERS)
    network.server.connection_meters = meters = ConnectionMeters(network.server.clock)
    network.server.update_ip_connection_rate_quota(HOST, 1)
    for _ in range(12):
        network.knock()
    network.knock("192.0.2.2")
    await network.turn()
    found = meters.listeners["CLIENTS"]
    now_ms = network.server.clock.monotonic_ms()
    assert found.accepted == len(network.server.connections) == 11
    assert found.ip_throttle_times.measure(now_ms) == 1000
    assert math.isnan(found.throttle_times.measure(now_ms))
    assert network.server.accept_rates() == (1.1, {"CLIENTS": 1.1, "BROKERS": 0})
    network.config.apply_dynamic(broker={RATE.replace("_", "."): "1"}, default={})
    network.knock("192.0.2.2")
    await network.turn()
    assert found.throttle_times.measure(now_ms) == 1000


@async_test
async def test_a_server_that_closes_closes_the_throttled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    network = await started(monkeypatch, **{RATE: "0"})
    held = network.knock()
    await network.turn()
    network.config.apply_dynamic(broker={RATE.replace("_", "."): "1000000"}, default={})
    await network.advance(1000)
    network.server.update_ip_connection_rate_quota(None, 0)
    turned_away = network.knock()
    await network.turn()
    network.config.apply_dynamic(broker={RATE.replace("_", "."): "0"}, default={})
    waiting = network.knock()
    await network.turn()
    await network.server.close()
    assert (turned_away.is_closed, waiting.is_closed) == (True, True)
    assert list(network.server.connections) == []
    assert network.timer.size == 0
    assert not held.is_blocking
