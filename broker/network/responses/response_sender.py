"""Sends responses: bytes through the transport, records directly from the file by `os.sendfile`.

Parts are sent strictly in the order in which they were pushed. The transport reports every byte that it cannot pass on
at once (high water 0). While it has not paused this sender its buffer is empty, so a direct write to the socket
overtakes nothing. What is sent first leaves at once, so that the client begins with it while the records come; bytes
between two regions are sent with MSG_MORE and share a packet with the records after them. Small regions, and all
regions of a transport that cannot be bypassed (TLS), are read and written instead.

The queue holds regions, not their bytes: a client that does not read costs the headers of its responses and one batch
of at most `COPY_BATCH_BYTES`.

Records that are converted for an old consumer are made slice by slice, each after the previous one is sent. Other
connections run in between (`lazy_down_conversion`).

`os.sendfile` blocks on pages that are not in memory. Pages are probed without waiting; missing ones are read in the I/O
pool first. A region is retained from `push` until it is sent or discarded: its descriptor must stay the same file. A
region that is shorter than announced (the log was truncated) closes the connection: there is no other way to report
that the promised bytes will not come.

Kafka: KafkaChannel.write, MultiRecordsSend, FileRecords.writeTo.
"""

from __future__ import annotations

import os
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, cast

from odradek.broker.machine.hot_reads import PROBE_STEP, is_in_memory, read_hot
from odradek.broker.network.responses.sliced_records import SlicedRecords
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.codec.codec import EncodeError, elements_in_steps, let_go
from odradek.protocol.codec.field import BYTES_TYPES
from odradek.protocol.framing import frame
from odradek.protocol.headers import encode_response_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.network.sockets.direct_socket import DirectSocket
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Response
    from odradek.protocol.headers import RequestHeader

    Bytes = bytes | bytearray | memoryview
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.sliced_work import Steps

COPY_REGION_BYTES: Final = 16 * 1024
"""Up to this size reading and writing a region costs less than sendfile (tests/benchmarks/parts/bench_network.py)."""

COPY_BATCH_BYTES: Final = 64 * 1024
"""Bytes handed to the transport at once."""

WINDOW_BYTES: Final = 1024 * 1024
"""Most bytes of one call of sendfile, one probe or one read-ahead."""

TURN_BYTES: Final = 4 * WINDOW_BYTES
"""After this many bytes of one connection the others run."""

_NO_REGIONS: Final = (*BYTES_TYPES, SlicedRecords)

TURN_REGIONS: Final = 128
"""The same limit for small regions, one read each: 10,000 partitions of one record have only a megabyte."""


class FileRegion(Protocol):
    """A range of bytes of a file. Implemented by `storage.segment.file_records.FileRegion`."""

    @property
    def size_in_bytes(self) -> int: ...

    @property
    def position(self) -> int: ...

    def fileno(self) -> int: ...

    def retain(self) -> None: ...

    def release(self) -> None: ...


class Output(Protocol):
    """The used part of `asyncio.Transport`."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...


class SentBytes:
    """How the records of responses were sent: by sendfile, or read and written."""

    __slots__ = ("copied", "sent_from_files")

    def __init__(self) -> None:
        self.copied = 0
        self.sent_from_files = 0


class SenderEvents(Protocol):
    """The events of a sender."""

    def sender_ready(self) -> None:
        """Everything is sent: the next request may be dispatched."""

    def sender_moved(self) -> None:
        """Sending goes on after it waited for the peer, a disk or a turn."""

    def sender_broken(self, reason: CloseReason, detail: str) -> None:
        """Nothing more can be sent."""


class _Waiting(Enum):
    """What must happen before anything more can be sent."""

    NOTHING = 0
    TRANSPORT = 1
    SOCKET = 2
    DISK = 3
    TURN = 4


def retaining(parts: Sequence[Part], retained: list[FileRegion]) -> Steps:
    """Retain the regions among the parts, one a step: each may have to open its file. Raises: OSError (EMFILE)."""
    for part in parts:
        if not isinstance(part, BYTES_TYPES) and part.size_in_bytes:
            region = cast("FileRegion", part)
            region.retain()
            retained.append(region)
            yield None


def answer_in_steps(
    header: RequestHeader,
    response: Response | None,
    send: Callable[[list[Part]], None],
    fail: Callable[[EncodeError | OSError], None],
) -> Steps:
    """Encode, in steps, a response that may be large, and `send` it.

    `fail`: it cannot be encoded, or a segment file cannot be opened.
    """
    assert response is not None
    api_key, api_version, correlation_id = header.api_key, header.api_version, header.correlation_id
    try:
        parts = yield from encode_response_in_steps(api_key, api_version, correlation_id, response)
        answer = frame(parts)
    except EncodeError as error:  # also of an answer with more bytes than a frame can have
        return fail(error)
    regions: list[FileRegion] = []
    try:
        yield from retaining(parts, regions)
    except OSError as unreadable:
        fail(unreadable)
    else:
        send(answer)
        if len(parts) > 1:
            elements = yield from elements_in_steps(response)
            response = None  # mypyc cannot delete it
            yield from let_go(elements)
    finally:
        for region in regions:
            region.release()


class ResponseSender:
    """The sending half of one connection."""

    __slots__ = (
        "_call_soon",
        "_direct",
        "_events",
        "_io_pool",
        "_is_discarded",
        "_may_read",
        "_open_direct",
        "_output",
        "_queue",
        "_read_ahead_to",
        "_sending_ns",
        "_sent_bytes",
        "_sent_of_first",
        "_waiting",
        "is_blocked",
        "now_ns",
        "queued_bytes",
    )

    def __init__(
        self,
        output: Output,
        events: SenderEvents,
        open_direct: Callable[[], DirectSocket] | None,
        io_pool: IoPool,
        call_soon: Callable[[Callable[[], None]], object],
        sent_bytes: SentBytes | None = None,
    ) -> None:
        """`open_direct` is None for a transport that must not be bypassed, `sent_bytes` while metrics are off."""
        self._output = output
        self._events = events
        self._open_direct = open_direct
        self._direct: DirectSocket | None = None
        self._io_pool = io_pool
        self._call_soon = call_soon
        self._sent_bytes = sent_bytes
        self._queue: deque[Bytes | FileRegion | SlicedRecords] = deque()
        self._waiting = _Waiting.NOTHING
        self.is_blocked = False
        """Whether sending waits: for the peer, a disk, or the turn of other connections."""
        self._sent_of_first = 0
        """Bytes of the region at the head of the queue that are sent."""
        self._read_ahead_to = 0
        """File position up to which the region at the head of the queue is in memory."""
        self._is_discarded = False
        self._may_read = TURN_REGIONS
        """Small regions that may still be read in this turn."""
        self._sending_ns = 0
        self.now_ns: Callable[[], int] | None = None
        """Set when the time of sending is to be measured."""
        self.queued_bytes = 0
        """Bytes in memory waiting for `flush`; regions do not count."""

    def push(self, parts: Sequence[Part]) -> bool:
        """Queue a response. Returns True if it should be flushed at once. Raises: OSError; nothing is queued then."""
        urgent, queued, bytes_before = False, 0, self.queued_bytes
        try:
            for part in parts:
                if isinstance(part, BYTES_TYPES):
                    self.queued_bytes += len(part)
                    self._queue.append(part)
                    queued += 1
                elif part.size_in_bytes:
                    region: FileRegion | SlicedRecords = part  # type: ignore[assignment]
                    region.retain()
                    self._queue.append(region)
                    queued, urgent = queued + 1, True
        except OSError:
            for _ in range(queued):
                if not isinstance(taken_back := self._queue.pop(), BYTES_TYPES):
                    taken_back.release()
            self.queued_bytes = bytes_before
            raise
        return urgent or self.queued_bytes >= COPY_BATCH_BYTES

    def take_sending_ns(self) -> int:
        """The time of the event loop that sending has taken since the last call; 0 if it is not measured.

        Ends the measurement: after a request of a sample, the others of its connection are not measured.
        """
        taken, self._sending_ns = self._sending_ns, 0
        self.now_ns = None
        return taken

    def flush(self) -> None:
        """Send as much as possible without waiting."""
        queue = self._queue
        if not queue:
            return
        if self.now_ns is None:
            first = queue[0]
            if len(queue) == 1 and isinstance(first, bytes) and not self.is_blocked:  # one response without records
                queue.clear()
                self.queued_bytes = 0
                self._output.write(first)
            else:
                self._flush()
            return
        began_ns = self.now_ns()
        self._flush()
        self._sending_ns += self.now_ns() - began_ns

    def _flush(self) -> None:
        queue = self._queue
        budget = TURN_BYTES
        self._may_read = TURN_REGIONS
        try:
            while queue and not self.is_blocked:
                if budget <= 0 or self._may_read <= 0:
                    self._wait_for(_Waiting.TURN)
                    self._call_soon(self._resume)
                    return
                batch = self._next_batch()
                if batch:
                    budget -= self._write(batch, is_first=budget == TURN_BYTES)
                elif not queue:
                    return  # the last parts were empty, as those of an encoder in steps may be
                elif isinstance(queue[0], SlicedRecords):
                    self._make_slice(queue[0])
                else:
                    direct = self._direct_socket()
                    region: FileRegion = queue[0]  # type: ignore[assignment]
                    budget -= self._copy_window(region) if direct is None else self._send_window(direct, region)
        except OSError as error:
            self._fail(CloseReason.CONNECTION_FAILED, str(error))

    def pause(self) -> None:
        """The transport could not pass on everything."""
        if not self.is_blocked:
            self._wait_for(_Waiting.TRANSPORT)

    def resume(self) -> None:
        """The transport's buffer is empty again."""
        if self._waiting is _Waiting.TRANSPORT:
            self._resume()

    def discard(self) -> None:
        """Release everything: the connection is closed."""
        self._is_discarded = True
        while self._queue:
            part = self._queue.popleft()
            if not isinstance(part, BYTES_TYPES):
                part.release()
        self.queued_bytes = 0
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    def _resume(self) -> None:
        if self._is_discarded:
            return
        self._wait_for(_Waiting.NOTHING)
        self._events.sender_moved()
        self.flush()
        if not (self.is_blocked or self._is_discarded):
            self._events.sender_ready()

    def _wait_for(self, waiting: _Waiting) -> None:
        self._waiting = waiting
        self.is_blocked = waiting is not _Waiting.NOTHING

    def _next_batch(self) -> list[Bytes]:
        """Bytes from the head of the queue, with small regions read; empty if the head is a region for sendfile."""
        queue = self._queue
        batch: list[Bytes] = []
        size = 0
        while queue and size < COPY_BATCH_BYTES and self._may_read > 0:
            part = queue[0]
            if isinstance(part, BYTES_TYPES):
                data: Bytes | None = part
                self.queued_bytes -= len(part)
            elif isinstance(part, SlicedRecords) or self._sent_of_first or part.size_in_bytes > COPY_REGION_BYTES:
                break
            else:
                data = read_hot(part)
                if data is None:
                    break
                self._may_read -= 1
                part.release()
                if self._sent_bytes is not None:
                    self._sent_bytes.copied += len(data)
            queue.popleft()
            if data:
                batch.append(data)
                size += len(data)
        return batch

    def _write(self, batch: list[Bytes], *, is_first: bool) -> int:
        data = batch[0] if len(batch) == 1 else b"".join(batch)
        size = len(data)
        following = self._queue[0] if self._queue else b""
        records_follow = not isinstance(following, _NO_REGIONS)
        direct = self._direct_socket() if records_follow else None
        if direct is not None:
            sent = self._send_direct(direct, data, more=not is_first)
            if sent < size:
                self._queue.appendleft(memoryview(data)[sent:])
                self.queued_bytes += size - sent
        else:
            self._output.write(data)
        return size

    def _send_direct(self, direct: DirectSocket, data: bytes | bytearray | memoryview, *, more: bool) -> int:
        try:
            sent = direct.send(data, more=more)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._wait_for_socket(direct)
        return sent

    def _send_window(self, direct: DirectSocket, region: FileRegion) -> int:
        """Send a window of the region at the head of the queue by sendfile. Returns the bytes sent."""
        fd = region.fileno()
        start = region.position + self._sent_of_first
        count = min(region.size_in_bytes - self._sent_of_first, WINDOW_BYTES)
        if start < self._read_ahead_to:
            count = min(count, self._read_ahead_to - start)
        elif is_in_memory(fd, start, count):
            self._read_ahead_to = start + count
        else:
            self._read_ahead(region, start, count)
            return 0
        try:
            sent = direct.sendfile(fd, start, count)
        except BlockingIOError:
            self._wait_for_socket(direct)
            return 0
        if not sent:
            self._fail(CloseReason.RECORDS_UNREADABLE, "the log was truncated while it was being sent")
            return 0
        if self._sent_bytes is not None:
            self._sent_bytes.sent_from_files += sent
        self._advance(region, sent)
        return sent

    def _make_slice(self, records: SlicedRecords) -> None:
        """Make the next slice of the records at the head of the queue and put it before the rest of them."""
        is_synchronous = True
        self._wait_for(_Waiting.DISK)

        def done(result: bytes | OSError) -> None:
            if self._is_discarded:
                return
            if isinstance(result, OSError):
                self._fail(CloseReason.RECORDS_UNREADABLE, str(result))
                return
            if not records.remaining:
                self._queue.popleft()
                records.release()
            self._queue.appendleft(result)
            self.queued_bytes += len(result)
            if is_synchronous:
                self._wait_for(_Waiting.TURN)
                self._call_soon(self._resume)
            else:
                self._resume()

        records.next_slice(done)
        is_synchronous = False

    def _copy_window(self, region: FileRegion) -> int:
        """As `_send_window`, through the transport."""
        fd = region.fileno()
        start = region.position + self._sent_of_first
        count = min(region.size_in_bytes - self._sent_of_first, COPY_BATCH_BYTES)
        if start + count > self._read_ahead_to and not is_in_memory(fd, start, count):
            self._read_ahead(region, start, count)
            return 0
        data = os.pread(fd, count, start)
        if not data:
            self._fail(CloseReason.RECORDS_UNREADABLE, "the log was truncated while it was being sent")
            return 0
        self._output.write(data)
        if self._sent_bytes is not None:
            self._sent_bytes.copied += len(data)
        self._advance(region, len(data))
        return len(data)

    def _advance(self, region: FileRegion, sent: int) -> None:
        self._sent_of_first += sent
        if self._sent_of_first == region.size_in_bytes:
            self._queue.popleft()
            self._sent_of_first = self._read_ahead_to = 0
            region.release()

    def _direct_socket(self) -> DirectSocket | None:
        """None if the transport must not be bypassed or no second descriptor is available."""
        if self._direct is None and self._open_direct is not None:
            try:
                self._direct = self._open_direct()
            except OSError:  # EMFILE
                self._open_direct = None
        return self._direct

    def _wait_for_socket(self, direct: DirectSocket) -> None:
        self._wait_for(_Waiting.SOCKET)
        direct.wait_writable(self._resume)

    def _read_ahead(self, region: FileRegion, start: int, count: int) -> None:
        """Read the pages into memory in the I/O pool."""
        region.retain()
        fd = region.fileno()
        self._wait_for(_Waiting.DISK)

        def work() -> None:
            left, position = count, start
            scratch = bytearray(PROBE_STEP)
            while left > 0:
                size = os.preadv(fd, [memoryview(scratch)[:left]], position)
                if not size:
                    return
                left -= size
                position += size

        def done(result: OSError | None) -> None:
            region.release()
            if self._is_discarded:
                return
            if result is not None:
                self._fail(CloseReason.RECORDS_UNREADABLE, str(result))
                return
            self._read_ahead_to = start + count
            self._resume()

        self._io_pool.submit(work, done)

    def _fail(self, reason: CloseReason, detail: str) -> None:
        self._wait_for(_Waiting.DISK)  # stays set: nothing may be sent any more
        self._events.sender_broken(reason, detail)
