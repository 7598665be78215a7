"""A Fetch that waits for `min_bytes` or `max_wait_ms`.

Readable bytes are counted from offsets and file positions; the log is read when the operation completes. It completes
early when this broker may no longer serve a partition, when the epoch is fenced, when the fetch offset is on an older
segment than the end (then there is at least a segment of data), or when the reader's log diverges.

A session waits for all its partitions, and usually only one of them changes. So it watches the partitions that are
awake and those that wake up while it waits, and checks only the partition that changed. At the end a session reads the
partitions that are awake. A fetch without a session reads those that changed, and reuses the first read of the others.

Kafka: DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.fetch.fetch_session import in_session
from odradek.broker.partition.partition import Partition
from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.timer.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from odradek.broker.fetch.fetch_session import FetchSession, PartitionFetch
    from odradek.broker.fetch.results import FetchParams, LogReadResult
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.offsets import LogOffsetMetadata


FOLLOWERS: Final = "fetches of followers"
"""The key under which all fetches of followers wait. A check of it answers them (`follower_waits`)."""


class Reads(Protocol):
    """The methods of `LogReads` that a waiting fetch uses."""

    def is_held_back(self, partition: Partition, params: FetchParams, /) -> bool:
        """Whether the throttle denies the reader records of the partition now."""

    def read_again(
        self, params: FetchParams, fetches: Sequence[PartitionFetch], known: Iterable[LogReadResult | None] = ..., /
    ) -> list[LogReadResult]:
        """Read at the end of the wait; `known` are results of the first read that are still valid."""


class DelayedFetch(DelayedOperation):
    """`results` are those of the first read, none of them an error; the session's partitions in `refused` were not read
    and have their errors in the response. The purgatory must watch the operation under `keys`.
    """

    def __init__(
        self,
        params: FetchParams,
        results: Sequence[LogReadResult],
        partitions: HostedPartitions,
        reads: Reads,
        respond: Callable[[Sequence[LogReadResult]], None],
        session: FetchSession | None = None,
        refused: Collection[PartitionFetch] = (),
    ) -> None:
        super().__init__(params.max_wait_ms)
        self._params = params
        self.reads_to_log_end = params.isolation is FetchIsolation.LOG_END
        self._first = {result.fetch.topic_partition: result for result in results}
        self._woken: dict[TopicPartition, tuple[PartitionFetch, LogOffsetMetadata]] = {}
        self._partitions = partitions
        self._reads = reads
        self._respond = respond
        self._session = session
        self._changed: set[TopicPartition] = set()
        self._available: dict[TopicPartition, int] = {}  # those with any
        self._bytes = 0
        self._has_looked = False
        if session is not None:
            session.waiting[self] = None
            if len(session.awake) > len(results):  # not only those that were read
                self._notice_late(session, refused)

    def _notice_late(self, session: FetchSession, refused: Collection[PartitionFetch]) -> None:
        """Add the partitions that woke up during the first read; they are at the end of `awake`. The read of one
        partition may change another: a follower's fetch completes an append, and its callback appends elsewhere.
        """
        for fetch in reversed(session.awake):
            if fetch in refused:
                continue
            topic_partition = fetch.topic_partition
            if topic_partition in self._first:
                break
            if fetch.position is not None:
                self._woken[topic_partition] = fetch, fetch.position

    @property
    def is_from_follower(self) -> bool:
        return self._params.is_from_follower

    @property
    def keys(self) -> Sequence[Hashable]:
        """The partitions; for a session one key more, since all of its partitions may be resting; for a follower the
        key of all of them.
        """
        session = () if self._session is None else (self._session,)
        return (*self._first, *self._woken, *session, *((FOLLOWERS,) if self._params.is_from_follower else ()))

    def on_expiration(self) -> None:
        stats = self._partitions.topic_stats
        if stats is not None:
            stats.expired_fetches["follower" if self.is_from_follower else "consumer"] += 1

    def woke_up(self, fetch: PartitionFetch) -> None:
        """Implements `WaitingFetch`."""
        topic_partition = fetch.topic_partition
        if self.watched_by is None or topic_partition in self._woken or topic_partition in self._first:
            return
        assert fetch.position is not None, "it has rested"
        self._woken[topic_partition] = fetch, fetch.position
        self.watched_by.watch_also(self, topic_partition)

    def try_complete(self) -> bool:
        """Check every partition that has more to read, once. Later changes are checked by `try_complete_for`."""
        if self._has_looked:
            return False
        self._has_looked = True
        if self._woken and any(self._look(topic_partition) for topic_partition in self._woken):
            return self.force_complete()
        for topic_partition, result in self._first.items():
            if self._log_at_end(topic_partition, result) is None:
                assert result.fetched is not None, "errors are answered at once"
                if self._is_enough(result.fetch, result.fetched.fetch_offset_metadata):
                    self._changed.update(self._first)
                    return self.force_complete()
        return False

    def try_complete_for(self, key: Hashable) -> bool:
        if key is FOLLOWERS:
            return self.force_complete()
        assert isinstance(key, TopicPartition)
        self._changed.add(key)
        return self._look(key) and self.force_complete()

    def _look(self, topic_partition: TopicPartition) -> bool:
        """Whether the present state of this partition, which has changed, completes the fetch."""
        result = self._first.get(topic_partition)
        if result is None:
            fetch, start = self._woken[topic_partition]
        else:
            assert result.fetched is not None, "errors are answered at once"
            fetch, start = result.fetch, result.fetched.fetch_offset_metadata
        if self._params.min_bytes <= 1 and fetch.max_bytes > 0 and self._has_more(topic_partition, start):
            return True
        return self._is_enough(fetch, start)

    def _is_enough(self, fetch: PartitionFetch, start: LogOffsetMetadata) -> bool:
        """Whether the fetch is complete with the bytes that are readable of a partition from `start` on. There may be
        none where the first read ended below the limit: compaction leaves gaps.
        """
        topic_partition = fetch.topic_partition
        try:
            available = self._readable(fetch, start)
        except KafkaError:
            return True  # the final read returns the error
        if available is None:
            return True
        self._bytes += available - self._available.pop(topic_partition, 0)
        if available:
            self._available[topic_partition] = available
        return self._bytes >= self._params.min_bytes

    def _has_more(self, topic_partition: TopicPartition, start: LogOffsetMetadata) -> bool:
        """Whether there are records from `start` on, of which one byte is enough. The read at the end of the wait finds
        them, or the error of a reader that may not have them: it is answered now in both cases.
        """
        partition = self._partitions.by_name.get(topic_partition)
        if not isinstance(partition, Partition) or (log := partition.log) is None:
            return False
        params = self._params
        return log.watermarks.limit(params.isolation) > start.message_offset and not (
            params.is_from_follower and self._reads.is_held_back(partition, params)
        )

    def _readable(self, fetch: PartitionFetch, start: LogOffsetMetadata) -> int | None:
        """Bytes readable of a partition from `start` on, its fetch offset when the wait began; None when the fetch has
        to be answered now.
        """
        params = self._params
        partition = self._partitions.partition_of_topic(fetch.topic_partition, fetch.topic_id)
        log = partition.local_log_with_epoch(fetch.current_leader_epoch, params.leader_only)
        end = log.limit_metadata(params.isolation)
        available = 0
        if start.message_offset > end.message_offset:
            return None
        if start.message_offset < end.message_offset and not self._reads.is_held_back(partition, params):
            size = start.bytes_until(end)
            if size is None:
                return None  # a newer segment, or the log has moved to files of another directory
            available = min(size, fetch.max_bytes)
        if fetch.last_fetched_epoch >= 0 and not log.leader_epochs.continues(
            fetch.last_fetched_epoch, fetch.fetch_offset, log.local_log.log_end_offset
        ):
            epoch, end_offset = log.end_offset_for_epoch(fetch.last_fetched_epoch)
            if epoch < fetch.last_fetched_epoch or end_offset < fetch.fetch_offset:
                return None
        return available

    def on_complete(self) -> None:
        session = self._session
        if session is None:
            fetches = [result.fetch for result in self._first.values()]
            known = [result if self._holds(tp, result) else None for tp, result in self._first.items()]
            self._respond(self._reads.read_again(self._params, fetches, known))
            return
        session.end_wait(self)
        fetches = [result.fetch for result in self._first.values()]
        if self._woken:
            fetches += [fetch for fetch, _ in self._woken.values()]
        if len(fetches) > 1:
            fetches.sort(key=in_session)
        self._respond(self._reads.read_again(self._params, fetches))

    def _holds(self, topic_partition: TopicPartition, result: LogReadResult) -> bool:
        if topic_partition in self._changed:
            return False
        log = self._log_at_end(topic_partition, result)
        # This fetch itself may have moved the high watermark, and retention the log start; neither wakes a fetch.
        return (
            log is not None
            and log.high_watermark == result.high_watermark
            and log.log_start_offset == result.log_start_offset
        )

    def _log_at_end(self, topic_partition: TopicPartition, result: LogReadResult) -> UnifiedLog | None:
        """The log, if the first read began at the end that the reader may see."""
        assert result.fetched is not None, "errors are answered at once"
        partition = self._partitions.by_name.get(topic_partition)
        log = partition.log if isinstance(partition, Partition) else None
        start = result.fetched.fetch_offset_metadata.message_offset
        return log if log is not None and log.watermarks.limit(self._params.isolation) == start else None
