"""Reads index pages and batch headers into the page cache before the event loop uses them: it must not wait for a disk.

A read finds its position through the offset index, which is memory-mapped. A page that is not in memory stops the whole
process for as long as the disk takes, and the process cannot find out beforehand. So the index of a segment that was
not used for a while is read in the I/O pool first. Batch headers are read from a descriptor, where the process can find
out: when they are not in memory, the I/O pool reads them with the records that will be sent.

A read that fails takes the log directory offline, as that of a fetch does: the fetch would touch the same page through
the map, and an error of the disk there is a SIGBUS, which kills the process.

Records at the end of a log were written a moment ago and are in memory; fetches of them are not checked.

Apache Kafka has no such step: its request threads wait for the disk.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.machine.hot_reads import is_in_memory
from odradek.broker.partition.partition import Partition
from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.offset_lookup import segment_of_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.fetch.fetch_session import PartitionFetch
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.storage.disk.ports import IoPool
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.timer.clock import Clock

RECENT_RECORDS: Final = 1_000
"""So many records at the end of a log are assumed to be in memory."""

WARM_MS: Final = 60_000
"""The pages of an index are assumed to stay in memory for so long after they were read."""

HEADERS_BYTES: Final = 4 * 1024
"""Bytes from an index entry on in which a read searches for its batch."""

READ_AHEAD_BYTES: Final = 1024 * 1024
"""Limit for one partition."""

_CHUNK_BYTES: Final = 256 * 1024

Lookup: TypeAlias = "tuple[TopicPartition, int]"
"""Of a timestamp in a partition: a time in ms, or one of `SpecialTimestamp`."""

Begin: TypeAlias = "Callable[[], Callable[[], None] | None]"
"""Called when the reads begin: returns the read for the I/O pool, None if it is left out. No file is pinned before: one
may ask what must be read, and not read it.
"""

Reads: TypeAlias = "list[tuple[UnifiedLog, Begin]]"

ROUNDS: Final = 2
"""First the index is read, then the headers at the position that it gives."""


class ColdReads:
    """Reads ahead for the fetches and offset lookups of one broker."""

    def __init__(self, partitions: HostedPartitions, io_pool: IoPool, clock: Clock) -> None:
        self._partitions = partitions
        self._io_pool = io_pool
        self._clock = clock

    def warm(self, fetches: Sequence[PartitionFetch], then: Callable[[], None]) -> None:
        """Call `then`, now or later, when `fetches` can probably be read without waiting for a disk."""
        _begin(self.needed(fetches), then)

    def needed(
        self, fetches: Sequence[PartitionFetch], rounds: int = ROUNDS
    ) -> Callable[[Callable[[], None]], None] | None:
        """What reads ahead for `fetches` and calls its argument then; None if they can be read at once."""
        cold: list[PartitionFetch] = []
        reads: Reads = []
        ends: list[Callable[[], None]] = []
        for fetch in fetches:
            found = self._segment_of(fetch)
            if found is None:
                continue
            log, segment = found
            before = len(reads)
            if segment.warm_until_ms <= self._clock.monotonic_ms():
                ends.append(partial(self._warmed, segment))
                paths = (segment.offset_index.path, segment.txn_index.path)
                reads += [(log, _file_read(path)) for path in paths]
            else:
                _read_ahead_headers(log, segment, fetch.fetch_offset, fetch.max_bytes, reads, ends)
            if len(reads) > before:
                cold.append(fetch)
        if not reads:
            return None

        def begin(then: Callable[[], None]) -> None:
            def look_again() -> None:
                more = self.needed(cold, rounds - 1)
                if more is None:
                    then()
                else:
                    more(then)

            self._read(reads, ends, look_again if rounds > 1 else then)

        return begin

    def warm_lookups(self, lookups: Sequence[Lookup], then: Callable[[], None]) -> None:
        """The same as `warm` for lookups of offsets by time."""
        _begin(self.lookups_needed(lookups), then)

    def lookups_needed(self, lookups: Sequence[Lookup]) -> Callable[[Callable[[], None]], None] | None:
        """The same as `needed` for lookups of offsets by time, or of the largest timestamp.

        First the ends of the time indexes are read, to find the segment; then its indexes; then its headers.
        """
        logs = [(log, timestamp) for tp, timestamp in lookups if (log := self._log(tp)) is not None]
        unknown = [
            (log, each.time_index.path)
            for log, timestamp in logs
            for each in log.segments.not_searched(timestamp if timestamp >= 0 else None)
            if not each.time_index.knows_its_end
        ]
        if unknown:
            reads_of_ends = [(log, _file_read(path, HEADERS_BYTES)) for log, path in unknown]
            return lambda then: self._read(reads_of_ends, [], partial(self._warm_found, logs, ROUNDS, then))
        reads, ends = self._reads_for(logs)
        if not reads:
            return None
        return lambda then: self._read(reads, ends, partial(self._warm_found, logs, ROUNDS - 1, then))

    def _warm_found(self, logs: Sequence[tuple[UnifiedLog, int]], rounds: int, then: Callable[[], None]) -> None:
        """The segments of the lookups are known: read what they need, in so many rounds."""
        reads, ends = self._reads_for(logs)
        self._read(reads, ends, partial(self._warm_found, logs, rounds - 1, then) if reads and rounds > 1 else then)

    def _reads_for(self, logs: Sequence[tuple[UnifiedLog, int]]) -> tuple[Reads, list[Callable[[], None]]]:
        """What the lookups need that is not in memory, and what to call when that is read."""
        reads: Reads = []
        ends: list[Callable[[], None]] = []
        for log, timestamp in logs:
            if log.log_dir.failure is not None:
                continue
            try:
                if (segment := segment_of_time(log.segments, timestamp)) is not None:
                    self._note_lookup(log, segment, timestamp, reads, ends)
            except (OSError, KafkaError):
                continue  # the lookup itself raises it again
        return reads, ends

    def _note_lookup(
        self, log: UnifiedLog, segment: LogSegment, timestamp: int, reads: Reads, ends: list[Callable[[], None]]
    ) -> None:
        if segment.warm_until_ms <= self._clock.monotonic_ms():
            ends.append(partial(self._warmed, segment))
            paths = (segment.offset_index.path, segment.time_index.path)
            reads += [(log, _file_read(path)) for path in paths]
        else:
            offset = segment.largest.offset if timestamp < 0 else segment.time_index.lookup(timestamp).offset
            _read_ahead_headers(log, segment, offset, READ_AHEAD_BYTES, reads, ends)

    def _read(self, begins: Reads, ends: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
        """Do the reads in the I/O pool, if there are any; then call `ends` and `then`."""
        if not begins:
            then()
            return
        reads = [(log, read) for log, begin in begins if (read := begin()) is not None]

        def work() -> list[tuple[UnifiedLog, OSError]]:
            failures: list[tuple[UnifiedLog, OSError]] = []
            for log, read in reads:
                try:
                    read()
                except OSError as error:
                    failures.append((log, error))
            return failures

        def done(failures: list[tuple[UnifiedLog, OSError]] | OSError) -> None:
            assert not isinstance(failures, OSError), "each read catches its own"
            for end in ends:
                end()
            for log, error in failures:
                log.log_dir.fail(f"Error while reading for {log.topic_partition} in dir {log.log_dir.path}", error)
            then()

        self._io_pool.submit(work, done)

    def _log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        partition = self._partitions.hosted(topic_partition)
        log = None if partition is None else partition.log
        return None if log is None or log.log_dir.failure is not None else log

    def _warmed(self, segment: LogSegment) -> None:
        segment.warm_until_ms = self._clock.monotonic_ms() + WARM_MS

    def _segment_of(self, fetch: PartitionFetch) -> tuple[UnifiedLog, LogSegment] | None:
        """The log and the segment of the fetch offset; None if everything that the fetch needs is assumed to be in
        memory.
        """
        partition = self._partitions.by_name.get(fetch.topic_partition)
        log = partition.log if isinstance(partition, Partition) else None
        if log is None or log.local_log.log_end_offset - fetch.fetch_offset <= RECENT_RECORDS:
            return None
        if fetch.fetch_offset < log.watermarks.log_start_offset or log.log_dir.failure is not None:
            return None
        segment = log.local_log.segments.floor(fetch.fetch_offset)
        return None if segment is None else (log, segment)


def _begin(read_ahead: Callable[[Callable[[], None]], None] | None, then: Callable[[], None]) -> None:
    """Call `then` when that is read, or at once if nothing has to be."""
    if read_ahead is None:
        then()
    else:
        read_ahead(then)


def _read_ahead_headers(
    log: UnifiedLog,
    segment: LogSegment,
    offset: int,
    max_bytes: int,
    reads: Reads,
    ends: list[Callable[[], None]],
) -> None:
    """If the headers are not in memory, add the read to `reads` and the release of its file to `ends`."""
    try:
        position = segment.offset_index.lookup(offset).position
        records = segment.records
        size = min(max(HEADERS_BYTES, min(max_bytes, READ_AHEAD_BYTES)), records.size - position)
        if size <= 0 or is_in_memory(records.fileno(), position, min(size, HEADERS_BYTES)):
            return
        region = records.region(position, size)
    except (OSError, KafkaError):
        return  # the real read raises it again

    def begin() -> Callable[[], None] | None:
        try:
            region.retain()
        except OSError:
            return None
        return partial(_read, region.fileno(), position, size)

    reads.append((log, begin))
    ends.append(region.release)


def _file_read(path: str, last_bytes: int | None = None) -> Begin:
    return lambda: partial(_read_file, path, last_bytes)


def _read_file(path: str, last_bytes: int | None = None) -> None:
    """Read a file, or its last bytes. Raises OSError. To open the file may fail: who maps it gets that error, too."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        size = os.fstat(fd).st_size
        start = 0 if last_bytes is None else max(0, size - last_bytes)
        _read(fd, start, size - start)
    finally:
        os.close(fd)


def _read(fd: int, position: int, size: int) -> None:
    """Read the bytes and drop them, so that they are in the page cache. Raises OSError."""
    scratch = memoryview(bytearray(min(size, _CHUNK_BYTES)))
    while size > 0:
        count = os.preadv(fd, [scratch[:size]], position)
        if not count:
            return
        position += count
        size -= count
