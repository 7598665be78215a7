"""Hostile input in any count: mutated requests, impossible sizes, other protocols, bombs of all codecs.

Each function takes a running broker. It raises AssertionError if the broker grows, lets another client wait for too
long, or logs too much.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Final, TypeAlias

import crc32c
import psutil

from odradek.broker.machine.line_limit import BURST
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from tests.support.disks.open_descriptors import open_targets
from tests.support.loads.hostile.watcher import Seen
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.waits import Waits
from tests.support.waiting import eventually
from tests.support.wire.bombs import BOMBS
from tests.support.wire.mutated_frames import mutated, originals
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import build

AT_A_TIME: Final = 50
SENDERS: Final = 4
"""Threads: while the frames of one wait for an answer, or for a TLS handshake, the others send."""
GIVEN_UP_AFTER_S: Final = 0.25
"""A request that waits (a fetch, a join) is left by its client after that."""

SOON_S: Final = 1.0
AT_ONCE_S: Final = 0.05
GROWTH_BYTES: Final = 64 << 20
SIZES_BYTES: Final = 8 << 20
"""The announced frames have 100 MB and more."""
BOMB_BYTES: Final = 64 << 20
"""What all processes of a broker may need more while it decompresses: the peaks of all of them together."""

LENGTH_AT: Final = 8
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
RECORD_BATCH_OVERHEAD: Final = 61
WARM_UP_SHARE: Final = 0.1
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "offsets.retention.minutes": "1",
    "transactional.id.expiration.ms": "1000",
    "connections.max.idle.ms": "20000",
}


def plain(broker: OdradekBroker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=15)


Connect: TypeAlias = Callable[[OdradekBroker], socket.socket]
"""Opens a connection to one of a broker's listeners."""


class Watch:
    """The requests of another client, one after the other, from a process of its own: `watcher`."""

    def __init__(self, broker: OdradekBroker, request: Request | None = None, version: int = 9) -> None:
        """`request`: by default Metadata without topics."""
        self._broker = broker
        self._request = request or MetadataRequest(topics=[])
        self._version = version
        self.seen = Seen(0.0, 0.0, 0)

    @property
    def longest_s(self) -> float:
        """The longest wait for an answer, without the time in which a thread that had to work got no core."""
        return self.seen.undisturbed_s

    @property
    def text(self) -> str:
        name = API[self._request.API_KEY].name
        return f"{name} within {self.longest_s:.2f} s ({self.seen.whole_s:.2f} s with the waits for a core)"

    @contextmanager
    def looking(self) -> Iterator[None]:
        header = RequestHeader(self._request.API_KEY, self._version, 1, "watch")
        frame = encode_request(header, self._request)
        task = [self._broker.host, str(self._broker.port), str(self._broker.pid), frame.hex()]
        command = [sys.executable, "-m", "tests.support.loads.hostile.watcher", *task]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n"
                yield
                seen, _ = process.communicate()
            finally:
                process.kill()
        self.seen = Seen(*json.loads(seen))


def exchange(broker: OdradekBroker, frames: list[bytes], connect: Connect = plain) -> None:
    """Each frame over a connection of its own, ended by the client; whatever is answered is read."""
    with selectors.DefaultSelector() as selector:
        for frame in frames:
            connection = connect(broker)
            with suppress(OSError):  # the broker has closed it
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


def descriptors(broker: OdradekBroker) -> Counter[str]:
    """How many sockets and pipes the broker has open. Its files are not counted: earlier requests may create topics."""
    found: Counter[str] = Counter()
    for target in open_targets(broker.pid):
        kind, separator, _ = target.partition(":[")
        found[kind] += bool(separator)
    return found


def mutated_frames(seed: int) -> Iterator[bytes]:
    """With their lengths, without end."""
    rng = random.Random(seed)
    seeds = originals(seed)
    while True:
        frame = mutated(rng.choice(seeds), seeds, rng)
        yield struct.pack(">i", len(frame)) + frame


def exchange_all(broker: OdradekBroker, frames: Iterator[bytes], connect: Connect) -> None:
    """As `exchange`, some at a time. What a sender raises is raised."""
    taking = threading.Lock()

    def send() -> None:
        while True:
            with taking:
                some = list(islice(frames, AT_A_TIME))
            if not some:
                return
            exchange(broker, some, connect)

    with ThreadPoolExecutor(SENDERS) as pool:
        for sender in [pool.submit(send) for _ in range(SENDERS)]:
            sender.result()


def mutated_requests(broker: OdradekBroker, count: int, seed: int, connect: Connect = plain) -> None:
    """Mutated requests of every API and version."""
    print(f"seed {seed}, {count} frames")
    frames = mutated_frames(seed)
    watch = Watch(broker)
    warm_up = int(count * WARM_UP_SHARE)
    with watch.looking():
        exchange_all(broker, islice(frames, warm_up), connect)
        warm = resident(broker)
        exchange_all(broker, islice(frames, count - warm_up), connect)
    growth = resident(broker) - warm
    print(f"{count} frames: grown by {growth >> 20} MB, {watch.text}")
    assert watch.longest_s < SOON_S
    assert growth <= GROWTH_BYTES


def impossible_sizes(broker: OdradekBroker, count: int, connect: Connect = plain) -> None:
    """Each connection is closed at once, without memory for what is announced."""
    sizes = (2**31 - 1, -1, -(2**31), 104_857_601)
    longest_s = 0.0
    with connect(broker):  # what the first connection brings is not counted
        growth = Growth(broker.pid)
    with closing(Waits(broker.pid)) as waits:
        for number in range(count):
            with connect(broker) as client:
                waits.begin()
                client.sendall(struct.pack(">i", sizes[number % len(sizes)]))
                assert awaits_close(client)
                longest_s = max(longest_s, waits.end().undisturbed_s)
    print(f"{count} sizes: closed within {longest_s:.3f} s, {growth.most >> 10} KB more")
    assert longest_s < AT_ONCE_S
    assert growth.most < SIZES_BYTES


def awaits_close(client: socket.socket) -> bool:
    """Whether the broker closes the connection without sending anything. Raises: TimeoutError."""
    try:
        return client.recv(1) == b""
    except (ConnectionResetError, ssl.SSLEOFError):
        return True


def other_protocols(broker: OdradekBroker, count: int, seed: int, connect: Connect = plain) -> None:
    """Connections of TLS, HTTP, SSH, random bytes, half requests, and resets."""
    print(f"seed {seed}, {count} connections")
    rng = random.Random(seed)
    process = psutil.Process(broker.pid)
    exchange(broker, [b"GET / HTTP/1.1\r\n\r\n"] * AT_A_TIME, connect)
    before, threads = descriptors(broker), process.num_threads()
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
    for first in range(0, count, AT_A_TIME):
        exchange(broker, [rng.choice(junk)() for _ in range(min(AT_A_TIME, count - first))], connect)
        reset(broker, connect)
    took_s = time.monotonic() - started
    eventually(lambda: descriptors(broker) - before, accept=lambda more: not more)
    assert process.num_threads() <= threads + 1
    assert len(broker.log_text().splitlines()) - lines < BURST + 20 * took_s


def reset(broker: OdradekBroker, connect: Connect) -> None:
    """A connection that is broken off in the middle of a frame."""
    with connect(broker) as rude:
        rude.sendall(struct.pack(">i", 1000) + b"half")
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def plain_client(broker: OdradekBroker) -> RawClient:
    return RawClient(broker.host, broker.port, timeout_s=30)


def bombs(broker: OdradekBroker, count: int, connect: Callable[[OdradekBroker], RawClient] = plain_client) -> None:
    """Batches of a bomb of each codec, to a topic for which the broker has to decompress them."""
    make_topic(broker, "bombed", {"compression.type": "uncompressed"})
    watch, growth = Watch(broker), Growth(broker.pid)
    batches = [batch_of(codec, bomb()) for codec, bomb in BOMBS.values()]
    with watch.looking(), connect(broker) as client:
        for records in batches * count:
            data = [{"name": "bombed", "partition_data": [{"index": 0, "records": memoryview(records)}]}]
            produced = client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=10_000, topic_data=data), 8)
            assert produced.responses[0].partition_responses[0].error_code != 0  # type: ignore[attr-defined]
            growth.look()
    print(f"{len(batches) * count} bombs: {growth.most >> 20} MB more, {watch.text}")
    assert watch.longest_s < SOON_S
    assert growth.most <= BOMB_BYTES


def batch_of(codec: CompressionType, compressed: bytes) -> bytes:
    """A batch of one record, as its header says, with this in place of the record."""
    batch = bytearray(build_batch([SimpleRecord(0, None, b"v")])[:RECORD_BATCH_OVERHEAD]) + compressed
    struct.pack_into(">i", batch, LENGTH_AT, len(batch) - LENGTH_AT - 4)
    struct.pack_into(">h", batch, ATTRIBUTES_AT, codec)
    struct.pack_into(">I", batch, CRC_AT, crc32c.crc32c(bytes(batch[ATTRIBUTES_AT:])))
    return bytes(batch)
