"""Clients that are slow or silent, in any count, and what a client that behaves waits for beside them."""

from __future__ import annotations

import json
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Final, NamedTuple

import psutil

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.garbage import no_collection
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.waits import Wait, Waits
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

IDLE_TOLERANCE_S: Final = 10
CALLS: Final = 2_000
ROUNDS: Final = 3
ROUND_S: Final = 0.2
"""At least, so that slow clients send something meanwhile: a byte a second each."""
STALLED_TURNS: Final = 50
SHORT_MS: Final = 1.0
"""Of one record and the processor's caches; p99 alone is between 0.1 and 0.6 ms."""
BACKLOG: Final = 40
PRODUCE_BYTES: Final = 1_000
STORED_BYTES: Final = 900_000
READER_BYTES: Final = 200 << 20
"""What a broker may need more for all clients that do not read."""


def produce(value: bytes) -> Request:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(value)}]}]
    return build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)


class P99(NamedTuple):
    """The 99th percentiles of a produce, in ms."""

    whole_ms: float
    undisturbed_ms: float
    """Of `Wait.undisturbed_s`: what other work on the machine does not change."""

    def __str__(self) -> str:
        return f"{self.undisturbed_ms:.2f} ms ({self.whole_ms:.2f} ms with the waits for a core)"


def produce_p99(broker: OdradekBroker, calls: int = CALLS, before_each: Callable[[], None] = lambda: None) -> P99:
    """What a client that behaves waits for, one record at a time: the best of some rounds. What others cost is in all
    of them, what the machine does besides is not. `before_each`: called before each record, and not measured.
    """
    rounds = [_round(broker, calls, before_each) for _ in range(ROUNDS)]
    return min(rounds, key=lambda each: each.undisturbed_ms)


def _round(broker: OdradekBroker, calls: int, before_each: Callable[[], None] = lambda: None) -> P99:
    request, found = produce(bytes(PRODUCE_BYTES)), []
    with RawClient(broker.host, broker.port) as client, closing(Waits(broker.pid)) as waits, no_collection():
        for _ in range(calls):
            before_each()
            time.sleep(ROUND_S / calls)
            waits.begin()
            client.call(request, 8)
            found.append(waits.end())
    whole, undisturbed = (
        statistics.quantiles([wait[of] * 1000 for wait in found], n=100)[98] for of in range(len(Wait._fields))
    )
    return P99(whole, undisturbed)


def check_beside(alone: P99, beside: P99) -> None:
    """AssertionError: a client that behaves waits longer beside the others."""
    assert beside.undisturbed_ms < max(2 * alone.undisturbed_ms, SHORT_MS)


class TlsFiles(NamedTuple):
    """What a client with TLS needs: a CA, and its certificate with the key, both in PEM."""

    ca: str
    certificate: str

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate)
        return context


class Target(NamedTuple):
    """The listener of a broker that clients connect to; with `tls` a connection has made its handshake."""

    host: str
    port: int
    pid: int
    tls: TlsFiles | None = None


class Tricklers:
    """A process with clients that send a byte a second: `trickler`."""

    def __init__(self, target: Target, count: int) -> None:
        task = json.dumps([*target[:3], target.tls, count])
        command = [sys.executable, "-m", "tests.support.loads.hostile.trickler", task]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def are_open(self) -> bool:
        """Whether the broker has closed none of them. They end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._line() == "open"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def connections(target: Target, count: int) -> list[socket.socket]:
    """That many, opened no faster than the broker accepts them: `socket.listen.backlog.size` are 50."""
    process = psutil.Process(target.pid)
    context = None if target.tls is None else target.tls.context()
    clients: list[socket.socket] = []
    while len(clients) < count:
        some = [socket.create_connection(target[:2]) for _ in range(min(BACKLOG, count - len(clients)))]
        wait_until_accepted(process, some)
        clients += some if context is None else [context.wrap_socket(one, server_hostname="localhost") for one in some]
    return clients


def wait_until_accepted(process: psutil.Process, clients: list[socket.socket]) -> None:
    """Wait until the process has accepted each of them: `connect` returns before that."""
    wanted = {(client.getpeername(), client.getsockname()) for client in clients}

    def missing() -> int:
        return len(wanted - {(one.laddr, one.raddr) for one in process.net_connections("tcp")})

    eventually(missing, accept=lambda count: count == 0)


class IdleClients:
    """Connections without a request. `max_idle_s`: after so many seconds the broker closes an idle one."""

    def __init__(self, target: Target, count: int, max_idle_s: float) -> None:
        self._target, self._count, self._max_idle_s = target, count, max_idle_s
        self._clients: list[socket.socket] = []
        self.renew()

    def renew(self) -> None:
        """Close them, and open as many new ones."""
        self.close()
        self._began = time.monotonic()
        self._clients = connections(self._target, self._count)
        self._open = time.monotonic()

    def keep(self) -> None:
        """Renew them if half of the time is over after which the broker closes them."""
        if time.monotonic() - self._began > self._max_idle_s / 2:
            self.renew()

    def wait_until_closed(self) -> None:
        """AssertionError: the broker closes one too early, or does not close it."""
        timeout_s = self._max_idle_s + IDLE_TOLERANCE_S + self._open - self._began
        eventually(lambda: sum(map(is_open, self._clients)), accept=lambda count: count == 0, timeout_s=timeout_s)
        assert time.monotonic() - self._began >= self._max_idle_s

    def close(self) -> None:
        for client in self._clients:
            client.close()


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def slow_and_idle(
    broker: OdradekBroker,
    *,
    idle: int,
    slow: int,
    max_idle_s: float,
    port: int = 0,
    tls: TlsFiles | None = None,
    calls: int = CALLS,
) -> None:
    """Idle connections are closed after `max_idle_s` seconds, slow ones stay. `port`: of another listener for both.
    `tls`: it has TLS, and both make the handshake. `calls`: produced records of a measurement.

    AssertionError, too: the p99 of a produce is more than twice that without them.
    """
    process, target = psutil.Process(broker.pid), Target(broker.host, port or broker.port, broker.pid, tls)
    _round(broker, calls)
    alone = produce_p99(broker, calls)
    descriptors = process.num_fds()
    with closing(Tricklers(target, slow)) as tricklers, closing(IdleClients(target, idle, max_idle_s)) as silent:
        beside = produce_p99(broker, calls, silent.keep)
        print(f"p99 of a produce: alone {alone}, beside {idle} idle and {slow} slow ones {beside}")
        silent.renew()
        silent.wait_until_closed()
        assert tricklers.are_open(), "one that sends is not idle"
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
    check_beside(alone, beside)


def wait_until_stalled(broker: OdradekBroker, readers: list[RawClient]) -> None:
    """Until the buffers of the kernel are full: in so many turns of the broker's loop nothing more has come."""
    arrived: deque[int] = deque(maxlen=STALLED_TURNS)
    with RawClient(broker.host, broker.port) as client:
        while len(arrived) < STALLED_TURNS or len(set(arrived)) > 1:
            client.call(build(ApiKey.API_VERSIONS), 0)
            arrived.append(sum(reader.unread_bytes() for reader in readers))


def never_read(
    broker: OdradekBroker,
    *,
    readers: int,
    log_bytes: int,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    calls: int = CALLS,
) -> None:
    """So many clients ask for the whole log of so many bytes, which is in the topic `t`, and read nothing.

    AssertionError: the p99 of a produce is more than twice that without them, or the broker grows. `port`, `tls`,
    `calls`: see `slow_and_idle`.
    """
    with RawClient(broker.host, broker.port) as client:
        request = produce(bytes(STORED_BYTES))
        for _ in range(log_bytes // STORED_BYTES):
            client.call(request, 8)
    _round(broker, calls)
    alone = produce_p99(broker, calls)
    process = psutil.Process(broker.pid)
    growth, descriptors = Growth(broker.pid), process.num_fds()
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": log_bytes}
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=log_bytes,
        topics=[{"topic": "t", "partitions": [wanted]}],
    )
    clients = [RawClient(broker.host, port or broker.port, tls=tls) for _ in range(readers)]
    for reader in clients:
        reader.send(fetch, 11)
    wait_until_stalled(broker, clients)
    beside = produce_p99(broker, calls)
    grown = growth.most
    print(f"{readers} readers: {grown >> 20} MB more, p99 of a produce {alone}, beside them {beside}")
    assert grown <= READER_BYTES
    for reader in clients:
        reader.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
    check_beside(alone, beside)
