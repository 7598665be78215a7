"""Incremental fetch sessions (KIP-227), decided purely: what a client fetches, and which of it its next answer names.

An incremental answer leaves out partitions about which there is nothing new, and partitions that returned records move
to the end, so that every one gets its turn when responses are size-limited (Kafka's ``FetchSession``).

A session of thousands of partitions costs what has changed. Each of its partitions is in one of two states:

==========  ============================================  ==========================================================
state       with a fetch                                  until
==========  ============================================  ==========================================================
awake       is read, and named if that is news            it was read to the end, and all of that was told
resting     is not looked at: an answer would not name    it changes (`partition_news`), a request names it, or the
            it, and a follower has all there is of it     session is asked by somebody else or in another way
==========  ============================================  ==========================================================

What a follower's fetch says of resting partitions, that it is caught up there, is the time of the session's last fetch
(`LastFetch`), which the leader's replicas ask for when they are asked themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.partition.replica import LastFetch
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.partition.partition_news import PartitionNews
    from odradek.broker.partition.replica import Replica
    from odradek.protocol.messages.fetch import PartitionData
    from odradek.storage.offsets import LogOffsetMetadata

Key = tuple[bytes | str | None, int]

NO_PREFERRED_REPLICA: Final = -1
"""Kafka: FetchResponse.INVALID_PREFERRED_REPLICA_ID."""

FETCHES_AT_ONCE: Final = 1_000
"""Partitions of a session that is over which one callback lets go of, in about a millisecond."""

NOT_CACHED: Final = -1
"""The size of a session that is not counted and ranked in the cache yet."""


class WaitingFetch(Protocol):
    """A fetch of a session that is not answered yet."""

    def woke_up(self, fetch: PartitionFetch) -> None:
        """A partition that rested when the fetch began to wait does not any more."""


class PartitionFetch:
    """One partition of a fetch: what the client asked last, and (in a session) what it was told last.

    `session` is None outside of one. `order` is its place there. `position` is where the fetch offset lies, of a
    partition that rests or has rested.
    """

    __slots__ = (
        "_news",
        "_replica",
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "order",
        "partition",
        "position",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic",
        "topic_id",
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
        self.key: Key = (topic if topic_id == ZERO_UUID else topic_id, partition)
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.log_start_offset = log_start_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.session: FetchSession | None = None
        self.order = 0
        self.position: LogOffsetMetadata | None = None
        self._news: PartitionNews | None = None
        self._replica: Replica | None = None

    def take_request(self, other: PartitionFetch) -> None:
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.log_start_offset = other.log_start_offset
        self.last_fetched_epoch = other.last_fetched_epoch

    def note_answer(self, data: PartitionData) -> bool:
        """Remember what is about to be told; True when it is news to the client.

        After an error the remembered high watermark becomes invalid, so that the partition is named again once the
        error is gone.
        """
        is_news = (
            records_size(data) > 0
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
            or data.preferred_read_replica != NO_PREFERRED_REPLICA
            or data.error_code != ErrorCode.NONE
            or data.diverging_epoch.epoch >= 0
        )
        self.sent_high_watermark = data.high_watermark if data.error_code == ErrorCode.NONE else -1
        self.sent_log_start_offset = data.log_start_offset
        return is_news

    @property
    def is_resting(self) -> bool:
        return self._news is not None

    def rest(self, news: PartitionNews, position: LogOffsetMetadata, replica: Replica | None) -> None:
        """Leave the partition alone until there is `news`. `replica`: that of the follower whose session this is."""
        session = self.session
        assert session is not None
        assert self._news is None
        del session.awake[self]
        self._news = news
        self.position = position
        news.subscribe(self)
        if replica is not None:
            self._replica = replica
            replica.rest(session.last_fetch)

    def wake_up(self) -> None:
        """Read the partition with the next answer."""
        if self._news is not None:
            self._news.unsubscribe(self)
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
        """Rest no longer; what the resting follower has said is noted."""
        self._news = None
        if self._replica is not None:
            self._replica.settle()
            self._replica = None

    def leave(self) -> None:
        """The partition, or its session, is over."""
        if self._news is not None:
            self._news.unsubscribe(self)
            self.disengage()
        self.session = None


Answers = Sequence[tuple[PartitionFetch, "PartitionData"]]
LetGo = Callable[[Collection[PartitionFetch]], None]
"""Has each of the partitions of a session that is over `leave`, now or little by little."""


def let_go_at_once(fetches: Collection[PartitionFetch]) -> None:
    """A `LetGo` for sessions of few partitions."""
    for fetch in fetches:
        fetch.leave()


def records_size(data: PartitionData) -> int:
    records = data.records
    if records is None:
        return 0
    return len(records) if isinstance(records, (bytes, bytearray, memoryview)) else records.size_in_bytes


class FetchSession:
    """The partitions one client fetches. `awake` are those that do not rest; `waiting` are its fetches that do.

    `asked_by` says who asks, and how: a partition may rest only as long as the same is asked.
    """

    __slots__ = (
        "_is_closed",
        "_let_go",
        "_next_order",
        "asked_by",
        "awake",
        "cached_size",
        "created_ms",
        "epoch",
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
        let_go: LetGo = let_go_at_once,
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
        self._let_go = let_go
        self._next_order = 0
        self._is_closed = False

    @property
    def has_resting(self) -> bool:
        return len(self.awake) < len(self.partitions)

    @property
    def may_rest(self) -> bool:
        """Whether it is in the cache: another one would not be told to let go of what rests."""
        return not self._is_closed

    def to_read(self) -> list[PartitionFetch]:
        """The partitions that are awake, in the order in which they are served."""
        return sorted(self.awake, key=in_session)

    def add(self, fetch: PartitionFetch) -> None:
        """One partition more, that it does not have yet."""
        self.partitions[fetch.key] = fetch
        fetch.session = self
        self.awake[fetch] = None
        self._to_end(fetch)

    def update(
        self, requested: Iterable[PartitionFetch], forgotten: Iterable[Key], asked_by: Hashable
    ) -> Generator[None, None, None]:
        """Take over what a request asks for, a partition a step."""
        if asked_by != self.asked_by:
            self.asked_by = asked_by
            for fetch in list(self.partitions.values()):
                fetch.wake_up()
                yield
        for fetch in requested:
            cached = self.partitions.get(fetch.key)
            if cached is None:
                self.add(fetch)
            else:
                cached.wake_up()
                cached.take_request(fetch)
            yield
        for key in forgotten:
            gone = self.partitions.pop(key, None)
            if gone is not None:
                self.awake.pop(gone, None)
                gone.leave()
            yield

    def select(self, answers: Answers) -> Generator[None, None, Answers]:
        """The answers that are news, looked at a partition a step; partitions that returned records go to the end of
        the order.
        """
        selected = []
        for fetch, data in answers:
            yield
            cached = self.partitions.get(fetch.key)
            if cached is None or not cached.note_answer(data):
                continue
            selected.append((fetch, data))
            if records_size(data) > 0:
                self._to_end(cached)
        return selected

    def close(self) -> None:
        """It is in the cache no longer. A fetch that waits is still answered."""
        self._is_closed = True
        if not self.waiting:
            self._leave()

    def begin_wait(self, fetch: WaitingFetch) -> None:
        """Tell `fetch` who wakes up."""
        self.waiting[fetch] = None

    def end_wait(self, fetch: WaitingFetch) -> None:
        """It is being answered."""
        del self.waiting[fetch]
        if self._is_closed and not self.waiting:
            self._leave()

    def _leave(self) -> None:
        fetches, self.partitions, self.awake = self.partitions, {}, {}
        self._let_go(fetches.values())

    def _to_end(self, fetch: PartitionFetch) -> None:
        fetch.order = self._next_order
        self._next_order += 1


def in_session(fetch: PartitionFetch) -> int:
    """Sorts the partitions of a session into the order in which they are served."""
    return fetch.order
