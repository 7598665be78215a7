"""Hostile input by the million: mutated requests, impossible sizes, other protocols.

All the time the broker must answer other clients within a second, log no traceback, and not grow. The seed is printed;
ODRADEK_SOAK_SEED repeats it. ODRADEK_SOAK_FRAMES shortens the run; the other counts follow it.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.mutated_frames import mutated, originals
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.soak

FRAMES = int(os.environ.get("ODRADEK_SOAK_FRAMES", "1000000"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
SIZES = max(10, FRAMES // 1_000)
JUNK = max(10, FRAMES // 100)
AT_A_TIME = 50
GIVEN_UP_AFTER_S = 0.25
"""A request that waits (a fetch, a join) is left by its client after that."""

SOON_S = 1.0
GROWTH_BYTES = 64 << 20
WARM_UP_SHARE = 0.1
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.retention.minutes": "1",
    "transactional.id.expiration.ms": "1000",
    "connections.max.idle.ms": "20000",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, SETTINGS)) as process:
        yield process


class Watch:
    """The Metadata requests of another client, one after the other: the longest wait for an answer."""

    def __init__(self, broker: OdradekBroker) -> None:
        self.longest_s = 0.0
        self.answers = 0
        self._broker = broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with RawClient(self._broker.host, self._broker.port, timeout_s=30) as client:
            while not self._stopping.wait(0.01):
                started = time.monotonic()
                client.call(MetadataRequest(topics=[]), 9)
                self.longest_s = max(self.longest_s, time.monotonic() - started)
                self.answers += 1

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join(30)


def exchange(broker: OdradekBroker, frames: list[bytes]) -> None:
    """Each frame over a connection of its own, ended by the client; whatever is answered is read."""
    with selectors.DefaultSelector() as selector:
        for frame in frames:
            connection = socket.create_connection((broker.host, broker.port), timeout=15)
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(frame)
                connection.shutdown(socket.SHUT_WR)
            selector.register(connection, selectors.EVENT_READ)
        deadline = time.monotonic() + GIVEN_UP_AFTER_S
        while selector.get_map() and (left_s := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                if not received(key.fileobj):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]


def received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def resident(broker: OdradekBroker) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


def test_mutated_requests(broker: OdradekBroker) -> None:
    print(f"seed {SEED}, {FRAMES} frames")
    rng = random.Random(SEED)
    seeds = originals(SEED)
    watch = Watch(broker)
    warm = 0
    with watch.looking():
        for first in range(0, FRAMES, AT_A_TIME):
            frames = [mutated(rng.choice(seeds), seeds, rng) for _ in range(min(AT_A_TIME, FRAMES - first))]
            exchange(broker, [struct.pack(">i", len(frame)) + frame for frame in frames])
            if not warm and first >= FRAMES * WARM_UP_SHARE:
                warm = resident(broker)
    growth = resident(broker) - warm
    print(f"{FRAMES} frames: grown by {growth >> 20} MB, Metadata within {watch.longest_s:.2f} s ({watch.answers})")
    assert watch.longest_s < SOON_S
    assert growth <= GROWTH_BYTES


def test_impossible_sizes(broker: OdradekBroker) -> None:
    before = resident(broker)
    sizes = (2**31 - 1, -1, -(2**31), 104_857_601)
    for number in range(SIZES):
        with RawClient(broker.host, broker.port) as client:
            client.send_bytes(struct.pack(">i", sizes[number % len(sizes)]))
            assert client.awaits_close()
    assert resident(broker) - before < GROWTH_BYTES


def test_what_speaks_another_protocol(broker: OdradekBroker) -> None:
    print(f"seed {SEED}, {JUNK} connections")
    rng = random.Random(SEED)
    process = psutil.Process(broker.pid)
    exchange(broker, [b"GET / HTTP/1.1\r\n\r\n"] * AT_A_TIME)
    descriptors, threads = process.num_fds(), process.num_threads()
    lines = len(broker.log_text().splitlines())
    junk = (
        lambda: b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(506),
        lambda: b"SSH-2.0-OpenSSH_9.6\r\n",
        lambda: rng.randbytes(rng.randrange(1, 2_000)),
        lambda: b"" if rng.random() < 0.5 else rng.randbytes(3),
        lambda: struct.pack(">i", 1_000_000) + rng.randbytes(50_000),
    )
    started = time.monotonic()
    for first in range(0, JUNK, AT_A_TIME):
        exchange(broker, [rng.choice(junk)() for _ in range(min(AT_A_TIME, JUNK - first))])
        reset(broker)
    took_s = time.monotonic() - started
    eventually(process.num_fds, accept=lambda count: count <= descriptors)
    assert process.num_threads() <= threads + 1
    assert len(broker.log_text().splitlines()) - lines < 100 + 20 * took_s


def reset(broker: OdradekBroker) -> None:
    """A connection that is broken off in the middle of a frame."""
    with socket.create_connection((broker.host, broker.port)) as rude:
        rude.sendall(struct.pack(">i", 1000) + b"half")
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
