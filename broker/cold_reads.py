"""Bringing into memory what a read looks at, before it is done on the event loop, which must not wait for a disk.

A read finds its place through the offset index, which is mapped: a page of it that is not in memory stops the whole
process for as long as the disk takes, and nobody can ask whether it is there. So the index of a segment that has not
been looked into for a while is read in the I/O pool first. Then the batch headers at that place are probed, as they are
read from a descriptor, and read ahead in the pool if they are not in memory, with the records that will be sent.

What was written a moment ago is in memory, and is not looked at here.

Answers to nothing in Apache Kafka, whose request threads wait for the disk themselves.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.hot_reads import is_in_memory
from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.fetch_session import PartitionFetch
    from odradek.broker.replica_manager import ReplicaManager
    from odradek.storage.ports import IoPool
    from odradek.storage.segment import LogSegment
    from odradek.timer.clock import Clock

RECENT_RECORDS: Final = 1_000
"""So many at the end of a log are taken for being in memory."""

WARM_MS: Final = 60_000
"""For so long the pages of an index are taken for being in memory, once they have been read."""

HEADERS_BYTES: Final = 4 * 1024
"""Looked at to find a batch, from an index entry on."""

READ_AHEAD_BYTES: Final = 1024 * 1024
"""At most, of one partition."""

_CHUNK_BYTES: Final = 256 * 1024

ROUNDS: Final = 2
"""The index comes first, and says where the headers are."""


class ColdReads:
    """What the fetches of one broker have read ahead."""

    def __init__(self, replica_manager: ReplicaManager, io_pool: IoPool, clock: Clock) -> None:
        self._replicas = replica_manager
        self._io_pool = io_pool
        self._clock = clock

    def warm(self, fetches: Sequence[PartitionFetch], then: Callable[[], None]) -> None:
        """Call `then` when these can be read without waiting for a disk, as far as can be told: now, or later."""
        self._round(fetches, then, ROUNDS)

    def _round(self, fetches: Sequence[PartitionFetch], then: Callable[[], None], rounds: int) -> None:
        now_ms = self._clock.monotonic_ms()
        cold: list[PartitionFetch] = []
        reads: list[Callable[[], None]] = []
        ends: list[Callable[[], None]] = []
        for fetch in fetches:
            segment = self._segment_of(fetch)
            if segment is None:
                continue
            before = len(reads)
            if segment.warm_until_ms <= now_ms:
                ends.append(partial(self._warmed, segment))
                paths = (segment.offset_index.path, segment.txn_index.path)
                reads += [partial(_read_file, path) for path in paths]
            else:
                _read_ahead_headers(segment, fetch, reads, ends)
            if len(reads) > before:
                cold.append(fetch)
        if not cold:
            then()
            return

        def work() -> None:
            for read in reads:
                read()

        def done(_: object) -> None:  # an error is met again by the read itself
            for end in ends:
                end()
            if rounds > 1:
                self._round(cold, then, rounds - 1)
            else:
                then()

        self._io_pool.submit(work, done)

    def _warmed(self, segment: LogSegment) -> None:
        segment.warm_until_ms = self._clock.monotonic_ms() + WARM_MS

    def _segment_of(self, fetch: PartitionFetch) -> LogSegment | None:
        """The segment a fetch begins in; None if it looks at nothing that could be cold."""
        partition = None if fetch.topic is None else self._replicas.hosted(TopicPartition(fetch.topic, fetch.partition))
        log = None if partition is None else partition.log
        if log is None or log.log_end_offset - fetch.fetch_offset <= RECENT_RECORDS or log.log_dir.failure is not None:
            return None
        return log.segments.floor(fetch.fetch_offset) if fetch.fetch_offset >= log.log_start_offset else None


def _read_ahead_headers(
    segment: LogSegment, fetch: PartitionFetch, reads: list[Callable[[], None]], ends: list[Callable[[], None]]
) -> None:
    """Note what has to be read, if the headers are not in memory, and what has to be let go of afterwards."""
    try:
        position = segment.offset_index.lookup(fetch.fetch_offset).position
        region = segment.records.region(position, max(HEADERS_BYTES, min(fetch.max_bytes, READ_AHEAD_BYTES)))
        size = region.size_in_bytes
        if not size or is_in_memory(region.fileno(), position, min(size, HEADERS_BYTES)):
            return
        region.retain()
    except (OSError, KafkaError):
        return  # the read itself will say so
    fd = region.fileno()
    reads.append(lambda: _read(fd, position, size))
    ends.append(region.release)


def _read_file(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _read(fd, 0, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def _read(fd: int, position: int, size: int) -> None:
    """Have the kernel bring these bytes into memory."""
    scratch = memoryview(bytearray(min(size, _CHUNK_BYTES)))
    while size > 0:
        count = os.preadv(fd, [scratch[:size]], position)
        if not count:
            return
        position += count
        size -= count
