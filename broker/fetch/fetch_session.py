"""Incremental fetch sessions (KIP-227), without I/O: a client's partitions, and the selection for its next answer.

An incremental answer omits partitions that have not changed. Partitions that returned records move to the end, so that
each gets its turn when the size of responses is limited.

The cost of a fetch depends on the partitions that have changed, not on the size of the session. Each partition is in
one of two states:

==========  ============================================  ==========================================================
state       at each fetch                                 until
==========  ============================================  ==========================================================
awake       it is read, and in the answer if it changed   it was read to its end and the answer contained all of that
resting     it is not read: the answer would omit it, and  it changes (`partition_news`), a request names it, or the
            a follower has the whole log                  reader or its request parameters change
==========  ============================================  ==========================================================

A follower is caught up in its resting partitions at the time of the session's last fetch (`LastFetch`); the leader's
replicas read that time when they need it.

Kafka: FetchSession, CachedPartition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.partition.replica import LastFetch
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.partition.partition_news import PartitionNews
    from odradek.broker.partition.replica import Replica
    from odradek.protocol.messages.fetch import FetchPartition, FetchTopic, PartitionData
    from odradek.storage.offsets import LogOffsetMetadata

Key = tuple[bytes | str | None, int]

PARTITIONS_A_STEP: Final = 16
"""Partitions of a fetch that are read, or looked at, in one step: a fifth of a millisecond."""

NO_PREFERRED_REPLICA: Final = -1
"""Kafka: FetchResponse.INVALID_PREFERRED_REPLICA_ID."""

FETCHES_AT_ONCE: Final = 1_000
"""Partitions of a closed session that one callback releases, in about a millisecond."""

NOT_CACHED: Final = -1
"""The size of a session that the cache does not count yet."""


class WaitingFetch(Protocol):
    """A fetch of a session that is not answered yet."""

    def woke_up(self, fetch: PartitionFetch) -> None:
        """A resting partition of the session woke up while the fetch waits."""


class PartitionFetch:
    """One partition of a fetch: the client's last request for it, and (in a session) the last answer.

    `topic_partition` names the partition, with an empty name while that of its topic id is not known. `session` is None
    outside of a session; `order` is the partition's place in it. `position` is the log position of the fetch offset,
    set once the partition has rested. Every negative leader epoch of a fetch means that it names none.
    """

    __slots__ = (
        "_replica",
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "news",
        "order",
        "partition",
        "position",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: bytes,
        partition: int,
        *,
        fetch_offset: int = -1,
        max_bytes: int = -1,
        current_leader_epoch: int = -1,
        log_start_offset: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.topic_partition = new_tuple(TopicPartition, (topic or "", partition))
        if topic_id == ZERO_UUID and topic is not None:
            self.key: Key = self.topic_partition  # an equal tuple: a request may name 60,000 partitions
        else:
            self.key = (topic if topic_id == ZERO_UUID else topic_id, partition)
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch if current_leader_epoch >= 0 else NO_PARTITION_LEADER_EPOCH
        self.log_start_offset = log_start_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.session: FetchSession | None = None
        self.order = 0
        self.position: LogOffsetMetadata | None = None
        self.news: PartitionNews | None = None
        """What ends the rest of the partition; None while it is awake."""
        self._replica: Replica | None = None

    def name_topic(self, topic: str | None) -> None:
        """The name that belongs to the topic id now."""
        self.topic = topic
        self.topic_partition = TopicPartition(topic or "", self.partition)

    def take_request(self, asked: FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        epoch = asked.current_leader_epoch
        self.current_leader_epoch = epoch if epoch >= 0 else NO_PARTITION_LEADER_EPOCH
        self.log_start_offset = asked.log_start_offset
        self.last_fetched_epoch = asked.last_fetched_epoch

    def is_news(self, data: PartitionData) -> bool:
        """Whether an answer differs from the last one that was sent."""
        return (
            data.high_watermark != self.sent_high_watermark
            or records_size(data) > 0
            or data.log_start_offset != self.sent_log_start_offset
            or data.preferred_read_replica != NO_PREFERRED_REPLICA
            or data.error_code != ErrorCode.NONE
            or data.diverging_epoch.epoch >= 0
        )

    def note_answer(self, data: PartitionData) -> bool:
        """Remember an answer that is about to be sent; True when it differs from the last one.

        After an error the remembered high watermark becomes invalid, so that the partition is in the answer again when
        the error is gone.
        """
        is_news = self.is_news(data)
        self.sent_high_watermark = data.high_watermark if data.error_code == ErrorCode.NONE else -1
        self.sent_log_start_offset = data.log_start_offset
        return is_news

    @property
    def is_resting(self) -> bool:
        return self.news is not None

    def rest(self, news: PartitionNews, position: LogOffsetMetadata, replica: Replica | None) -> None:
        """Skip the partition until `news` is announced. `replica` is the follower's, in a follower's session."""
        session = self.session
        assert session is not None
        assert self.news is None
        del session.awake[self]
        self.news = news
        self.position = position
        news.subscribe(self)
        if replica is not None:
            self._replica = replica
            replica.rest(session.last_fetch)

    def wake_up(self) -> None:
        """Read the partition with the next answer."""
        if self.news is not None:
            self.news.unsubscribe(self)
            self.has_news()

    def has_news(self) -> None:
        """Implements `Reader`."""
        self.disengage()
        session = self.session
        assert session is not None
        session.awake[self] = None
        for waiting in session.waiting:
            waiting.woke_up(self)

    def disengage(self) -> None:
        """Stop resting; copy the fetch times to the follower's replica."""
        self.news = None
        if self._replica is not None:
            self._replica.settle()
            self._replica = None

    def leave(self) -> None:
        """The partition leaves its session, or the session is closed."""
        if self.news is not None:
            self.news.unsubscribe(self)
            self.disengage()
        self.session = None


Answers = Sequence[tuple[PartitionFetch, "PartitionData"]]
Refusals = Sequence[tuple[PartitionFetch, ErrorCode]]
"""Of partitions that are not read."""
ReleasePartitions = Callable[[Collection[PartitionFetch]], None]
"""Calls `leave` of each partition of a closed session, at once or in slices."""


def release_at_once(fetches: Collection[PartitionFetch]) -> None:
    """A `ReleasePartitions` for sessions of few partitions."""
    for fetch in fetches:
        fetch.leave()


def records_size(data: PartitionData) -> int:
    records = data.records
    if records is None:
        return 0
    return len(records) if isinstance(records, (bytes, bytearray, memoryview)) else records.size_in_bytes


class FetchSession:
    """The partitions one client fetches. `awake` are those that do not rest; `waiting` are its unanswered fetches.

    `asked_by` identifies the reader and its request parameters; partitions may rest only while it stays the same.
    """

    __slots__ = (
        "_next_order",
        "_release",
        "asked_by",
        "awake",
        "cached_size",
        "created_ms",
        "epoch",
        "is_closed",
        "last_fetch",
        "last_used_ms",
        "partitions",
        "privileged",
        "session_id",
        "uses_topic_ids",
        "waiting",
    )

    def __init__(
        self,
        session_id: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        asked_by: Hashable = None,
        release: ReleasePartitions = release_at_once,
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.asked_by = asked_by
        self.cached_size = NOT_CACHED
        self.last_fetch = LastFetch()
        self.partitions: dict[Key, PartitionFetch] = {}
        self.awake: dict[PartitionFetch, None] = {}
        self.waiting: dict[WaitingFetch, None] = {}
        """Those whose `woke_up` is called for each partition that wakes up, until `end_wait`."""
        self._release = release
        self._next_order = 0
        self.is_closed = False
        """Whether the session has left the cache. It would never release partitions that rest from then on."""

    @property
    def has_resting(self) -> bool:
        return len(self.awake) < len(self.partitions)

    def to_read(self) -> list[PartitionFetch]:
        """The partitions that are awake, in the order in which they are served."""
        return sorted(self.awake, key=in_session) if len(self.awake) > 1 else list(self.awake)

    def add(self, fetch: PartitionFetch) -> None:
        """Add a partition that the session does not have yet."""
        self.partitions[fetch.key] = fetch
        fetch.session = self
        self.awake[fetch] = None
        self._to_end(fetch)

    def update(
        self,
        topics: Iterable[FetchTopic],
        forgotten: Iterable[Key],
        asked_by: Hashable,
        topic_name: Callable[[bytes], str | None],
    ) -> Generator[None, None, None]:
        """Apply the partitions of a request, `PARTITIONS_A_STEP` a step. `topic_name` gives the name for a topic id."""
        if asked_by != self.asked_by:
            self.asked_by = asked_by
            for fetch in list(self.partitions.values()):
                fetch.wake_up()
                yield
        number = 0
        for topic in topics:
            topic_id = topic.topic_id
            name = None if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                number += 1
                if number % PARTITIONS_A_STEP == 0:
                    yield
                cached = self.partitions.get((name if topic_id == ZERO_UUID else topic_id, asked.partition))
                if cached is not None:
                    if cached.news is not None:
                        cached.wake_up()
                else:
                    cached = PartitionFetch(topic_name(topic_id) if name is None else name, topic_id, asked.partition)
                    self.add(cached)
                cached.take_request(asked)
        for key in forgotten:
            gone = self.partitions.pop(key, None)
            if gone is not None:
                self.awake.pop(gone, None)
                gone.leave()
            yield

    def select(self, answers: Answers) -> Generator[None, None, Answers]:
        """The answers that differ from the last ones, `PARTITIONS_A_STEP` a step; partitions that returned records go
        to the end of the order.
        """
        selected = []
        for number, (fetch, data) in enumerate(answers, 1):
            if number % PARTITIONS_A_STEP == 0:
                yield
            cached = self.partitions.get(fetch.key)
            if cached is None or not cached.note_answer(data):
                continue
            selected.append((fetch, data))
            if records_size(data) > 0:
                self._to_end(cached)
        return selected

    def close(self) -> None:
        """The session has left the cache. Its waiting fetches are still answered."""
        self.is_closed = True
        if not self.waiting:
            self._leave()

    def end_wait(self, fetch: WaitingFetch) -> None:
        """`fetch` is being answered."""
        del self.waiting[fetch]
        if self.is_closed and not self.waiting:
            self._leave()

    def _leave(self) -> None:
        fetches, self.partitions, self.awake = self.partitions, {}, {}
        self._release(fetches.values())

    def _to_end(self, fetch: PartitionFetch) -> None:
        fetch.order = self._next_order
        self._next_order += 1


def in_session(fetch: PartitionFetch) -> int:
    """Sort key: the order in which the partitions of a session are served."""
    return fetch.order
