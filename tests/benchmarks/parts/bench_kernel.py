"""What the kernel's options would give a broker: the system calls of its paths alone, each with and without an option.

    python -m tests.benchmarks.parts.bench_kernel

Prints the processor time of the process that sends, receives or writes, per GB, and its speed; the best of several
rounds, which take turns. The peer is a process of its own on the loopback interface.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEGABYTE: Final = 1 << 20
FILE_BYTES: Final = 256 * MEGABYTE
SENT_BYTES: Final = 4 * FILE_BYTES
BATCH_BYTES: Final = 16_200
KAFKA_BUFFER_BYTES: Final = 102_400
"""`socket.send.buffer.bytes` and `socket.receive.buffer.bytes`, unless they are set."""
REQUEST_BYTES: Final = 6 * BATCH_BYTES
SYNC_FILE_RANGE_WRITE: Final = 2
SO_ZEROCOPY: Final = 60
MSG_ZEROCOPY: Final = 0x4000000
TCP_NOTSENT_LOWAT: Final = 25
ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Of so many bytes."""

    size: int
    processor_s: float
    wall_s: float

    def __str__(self) -> str:
        return f"{self.processor_s * 1e9 / self.size:8.3f} CPU s/GB {self.size / self.wall_s / 1e6:8.0f} MB/s"


Work = Callable[[], int]
"""Returns the bytes that it has moved."""


def cost_of(work: Work) -> Cost:
    began, used = time.perf_counter(), time.process_time()
    size = work()
    return Cost(size, time.process_time() - used, time.perf_counter() - began)


def compare(title: str, works: dict[str, Work]) -> None:
    """Print the best round of each, by processor time."""
    best: dict[str, Cost] = {}
    for _ in range(ROUNDS):
        for name, work in works.items():
            cost = cost_of(work)
            if name not in best or cost.processor_s < best[name].processor_s:
                best[name] = cost
    print(f"\n{title}")
    for name, cost in best.items():
        print(f"  {name:<52}{cost}", flush=True)


# -- sending


def drain(address: tuple[str, int]) -> None:
    """The peer: takes everything."""
    buffer = bytearray(MEGABYTE)
    with socket.create_connection(address) as peer:
        while peer.recv_into(buffer):
            pass


@contextmanager
def connected(target: Callable[[tuple[str, int]], None], receive_buffer: int = 0) -> Iterator[socket.socket]:
    """A connection with a process that runs `target`. It ends when the connection does."""
    with socket.socket() as listening:
        if receive_buffer:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        process = multiprocessing.get_context("fork").Process(target=target, args=(listening.getsockname(),))
        process.start()
        connection, _ = listening.accept()
    with connection:
        yield connection
    process.join()


def by_sendfile(path: Path, call_bytes: int, send_buffer: int = 0, not_sent_low: int = 0) -> Work:
    """The whole file several times, at most `call_bytes` a call; waits while the socket's buffer is full."""

    def work() -> int:
        with connected(drain) as connection, path.open("rb") as file:
            if send_buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
            if not_sent_low:
                connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, not_sent_low)
            connection.setblocking(False)
            poll = select.poll()
            poll.register(connection, select.POLLOUT)
            sent = 0
            while sent < SENT_BYTES:
                position = sent % FILE_BYTES
                try:
                    sent += os.sendfile(
                        connection.fileno(), file.fileno(), position, min(call_bytes, FILE_BYTES - position)
                    )
                except BlockingIOError:
                    poll.poll()
        return sent

    return work


def by_send(flags: int) -> Work:
    """From memory, 1 MB a call. With MSG_ZEROCOPY, the kernel's notes that it has sent are read when a call waits."""
    data = memoryview(bytes(MEGABYTE))

    def work() -> int:
        with connected(drain) as connection:
            if flags:
                connection.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
            connection.setblocking(False)
            poll = select.poll()
            poll.register(connection, select.POLLOUT)
            sent = 0
            while sent < SENT_BYTES:
                try:
                    sent += connection.send(data, flags)
                except OSError:  # its buffer is full, or (ENOBUFS) too many notes are not read
                    if flags:
                        read_notes(connection)
                    poll.poll()
        return sent

    return work


def read_notes(connection: socket.socket) -> None:
    while True:
        try:
            connection.recvmsg(0, 512, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            return


# -- receiving


def produce(address: tuple[str, int]) -> None:
    """The peer: requests of six batches, five of them under way."""
    data = bytes(REQUEST_BYTES)
    with socket.create_connection(address) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 128 * 1024)
        for number in range(SENT_BYTES // REQUEST_BYTES):
            peer.sendall(data)
            if number >= 5:
                peer.recv(1)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1):
            pass


def by_receive(receive_buffer: int) -> Work:
    """Into a buffer of 256 KB, as uvloop does, and one byte back for each request."""

    def work() -> int:
        buffer, received, answered = bytearray(256_000), 0, 0
        with connected(produce, receive_buffer) as connection:
            while count := connection.recv_into(buffer):
                received += count
                whole = received // REQUEST_BYTES
                if whole > answered:
                    connection.sendall(bytes(whole - answered))
                    answered = whole
        return received

    return work


# -- writing


def by_append(directory: Path, batches_a_call: int, *, preallocate: bool = False, drop: bool = False) -> Work:
    """Batches of 16 KB to six files in turn, as many in one call; the files are removed."""

    def work() -> int:
        data = [b"p" * 16, memoryview(bytes(BATCH_BYTES - 16))] * batches_a_call
        size = BATCH_BYTES * batches_a_call
        files = [os.open(directory / f"log-{number}", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for number in range(6)]
        written = 0
        try:
            if preallocate:
                for fd in files:
                    os.posix_fallocate(fd, 0, FILE_BYTES)
            while written < FILE_BYTES:
                for fd in files:
                    position = written // len(files)
                    os.pwritev(fd, data, position - position % size)
                written += size * len(files)
            if drop:
                for fd in files:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            for number, fd in enumerate(files):
                os.close(fd)
                (directory / f"log-{number}").unlink()
        return written

    return work


def by_flush(directory: Path, begin_every: int) -> Work:
    """64 MB and an fsync, which is what is measured. `begin_every`: after so many bytes the kernel begins to write."""
    libc = ctypes.CDLL(None, use_errno=True)

    def work() -> int:
        path = directory / "flushed"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            for position in range(0, 64 * MEGABYTE, MEGABYTE):
                os.pwrite(fd, bytes(MEGABYTE), position)
                if begin_every and (position + MEGABYTE) % begin_every == 0:
                    begin = ctypes.c_int64(position + MEGABYTE - begin_every)
                    libc.sync_file_range(fd, begin, ctypes.c_int64(begin_every), SYNC_FILE_RANGE_WRITE)
            os.fsync(fd)
        finally:
            os.close(fd)
            path.unlink()
        return 64 * MEGABYTE

    return work


def by_cold_read(path: Path, advice: int | None) -> Work:
    """The file from the disk, 1 MB a call."""

    def work() -> int:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if advice is not None:
                os.posix_fadvise(file.fileno(), 0, 0, advice)
            buffer, size = bytearray(MEGABYTE), 0
            while count := file.readinto(buffer):
                size += count
        return size

    return work


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=os.environ.get("TMPDIR")) as name:
        directory = Path(name)
        path = directory / "records"
        with path.open("wb") as file:
            for _ in range(FILE_BYTES // MEGABYTE):
                file.write(os.urandom(MEGABYTE))
            os.fsync(file.fileno())
        compare(
            "sendfile from the page cache",
            {
                "64 KB a call, send buffer of 100 KB": by_sendfile(path, 64 * 1024, KAFKA_BUFFER_BYTES),
                "256 KB a call, send buffer of 100 KB": by_sendfile(path, 256 * 1024, KAFKA_BUFFER_BYTES),
                "1 MB a call, send buffer of 100 KB (Odradek)": by_sendfile(path, MEGABYTE, KAFKA_BUFFER_BYTES),
                "4 MB a call, send buffer of 100 KB": by_sendfile(path, 4 * MEGABYTE, KAFKA_BUFFER_BYTES),
                "1 MB a call, send buffer of 1 MB": by_sendfile(path, MEGABYTE, MEGABYTE),
                "1 MB a call, the kernel's own send buffer": by_sendfile(path, MEGABYTE),
                "the same, TCP_NOTSENT_LOWAT of 128 KB": by_sendfile(path, MEGABYTE, 0, 128 * 1024),
            },
        )
        compare("from memory", {"send": by_send(0), "send with MSG_ZEROCOPY": by_send(MSG_ZEROCOPY)})
        compare(
            "requests of 96 KB received, five under way",
            {
                "receive buffer of 100 KB (Kafka's default)": by_receive(KAFKA_BUFFER_BYTES),
                "of 1 MB": by_receive(MEGABYTE),
                "the kernel's own": by_receive(0),
            },
        )
        compare(
            "batches of 16 KB appended to six files",
            {
                "each with its own call (Odradek)": by_append(directory, 1),
                "two in a call": by_append(directory, 2),
                "four in a call": by_append(directory, 4),
                "each with its own call, preallocated": by_append(directory, 1, preallocate=True),
                "each with its own call, dropped from the cache": by_append(directory, 1, drop=True),
            },
        )
        compare(
            "64 MB written and flushed",
            {
                "fsync": by_flush(directory, 0),
                "sync_file_range after each 1 MB, fsync": by_flush(directory, MEGABYTE),
                "sync_file_range after each 8 MB, fsync": by_flush(directory, 8 * MEGABYTE),
            },
        )
        compare(
            "read from the disk, 1 MB a call",
            {
                "without advice": by_cold_read(path, None),
                "POSIX_FADV_SEQUENTIAL": by_cold_read(path, os.POSIX_FADV_SEQUENTIAL),
                "POSIX_FADV_WILLNEED": by_cold_read(path, os.POSIX_FADV_WILLNEED),
            },
        )


if __name__ == "__main__":
    main()
