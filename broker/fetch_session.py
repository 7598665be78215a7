"""Incremental fetch sessions (KIP-227), decided purely: which partitions a Fetch means and which ones its answer names.

A request carries (session id, epoch):

==================  =====================================================================================
id 0, epoch 0       a full fetch that asks for a session; the answer's id is 0 when the cache has no room
any id, epoch 0     the same, and the named session is closed
any id, epoch -1    a full fetch without a session; the named session is closed
id, epoch n > 0     incremental: topics are additions and changes, forgotten topics removals; n must be the
                    session's expected epoch, which then moves on (2147483647 → 1)
==================  =====================================================================================

An incremental answer leaves out partitions about which there is nothing new, and partitions that returned records move
to the end, so that every one gets its turn when responses are size-limited (Kafka's ``FetchSession``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from odradek.broker.replica_results import NO_PREFERRED_REPLICA
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from odradek.broker.replica_results import ReadResult

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1
MIN_EVICTION_MS = 120_000
TOPIC_ID_VERSION = 13

MAX_CACHED_PARTITIONS = 500_000
"""Partitions that all sessions together may remember (about 250 bytes each). Kafka bounds the sessions only, and a
session grows with every partition a client names, existing or not."""

Key = tuple[bytes | str | None, int]


class PartitionFetch:
    """One partition of a fetch: what the client asked last, and (in a session) what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
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


Answers = Sequence[tuple[PartitionFetch, PartitionData]]


def records_size(data: PartitionData) -> int:
    records = data.records
    if records is None:
        return 0
    return len(records) if isinstance(records, (bytes, bytearray, memoryview)) else records.size_in_bytes


class FetchSession:
    """The partitions one client fetches, in the order in which they are served."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "partitions", "privileged", "session_id", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        partitions: dict[Key, PartitionFetch],
        now_ms: int,
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1

    def update(self, requested: Iterable[PartitionFetch], forgotten: Iterable[Key]) -> None:
        for fetch in requested:
            cached = self.partitions.get(fetch.key)
            if cached is None:
                self.partitions[fetch.key] = fetch
            else:
                cached.take_request(fetch)
        for key in forgotten:
            self.partitions.pop(key, None)

    def select(self, answers: Answers) -> Answers:
        """The answers that are news; partitions that returned records go to the end of the order."""
        selected = []
        for fetch, data in answers:
            cached = self.partitions.get(fetch.key)
            if cached is None or not cached.note_answer(data):
                continue
            selected.append((fetch, data))
            if records_size(data) > 0:
                self.partitions[fetch.key] = self.partitions.pop(fetch.key)
        return selected


class FetchSessionCache:
    """At most `max_sessions` sessions. A new one takes the place of one that was idle for `MIN_EVICTION_MS`, or of one
    that is worth less: not a follower's while the new one is, or old enough and with fewer partitions."""

    def __init__(
        self,
        max_sessions: int,
        random_id: Callable[[int, int], int],
        *,
        max_partitions: int = MAX_CACHED_PARTITIONS,
    ) -> None:
        self._max_sessions = max_sessions
        self._max_partitions = max_partitions
        self._random_id = random_id
        self._sessions: dict[int, FetchSession] = {}  # in order of last use
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def total_partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def has_room_for(self, additional_partitions: int) -> bool:
        return self.total_partitions + additional_partitions <= self._max_partitions

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def touch(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)

    def maybe_create(
        self, answers: Answers, *, privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """A new session that remembers `answers` as told, or None when there is no room."""
        if len(self._sessions) >= self._max_sessions and not self._evict(privileged, len(answers), now_ms):
            return None
        if not self.has_room_for(len(answers)):
            return None
        session_id = INVALID_SESSION_ID
        while session_id == INVALID_SESSION_ID or session_id in self._sessions:
            session_id = self._random_id(1, MAX_EPOCH)
        partitions = {}
        for fetch, data in answers:
            fetch.sent_high_watermark = data.high_watermark
            fetch.sent_log_start_offset = data.log_start_offset
            partitions[fetch.key] = fetch
        session = FetchSession(
            session_id, privileged=privileged, uses_topic_ids=uses_topic_ids, partitions=partitions, now_ms=now_ms
        )
        self._sessions[session_id] = session
        return session

    def _evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > MIN_EVICTION_MS:
            victim = oldest
        else:
            evictable = [
                session
                for session in self._sessions.values()
                if now_ms - session.created_ms > MIN_EVICTION_MS or (privileged and not session.privileged)
            ]
            if not evictable:
                return False
            victim = min(evictable, key=_worth)
            if (privileged, size, 0) < _worth(victim):
                return False
        self.remove(victim.session_id)
        self.evictions += 1
        return True


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return (session.privileged, len(session.partitions), session.session_id)


class FetchContext:
    """One Fetch request: the partitions it means, and how its answer is made from theirs.

    `error` is set when the session named could not be used; then there are no partitions.
    """

    __slots__ = ("_cache", "_expected_epoch", "_full", "_is_follower", "_session", "_version", "error", "partitions")

    def __init__(
        self,
        cache: FetchSessionCache,
        partitions: Iterable[PartitionFetch],
        *,
        version: int,
        session: FetchSession | None = None,
        full: bool = False,
        is_follower: bool = False,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self._cache = cache
        self._session = session
        self._expected_epoch = None if session is None else session.epoch
        self._full = full
        self._is_follower = is_follower
        self._version = version
        self.partitions = list(partitions)
        self.error = error

    def has_told(self, result: ReadResult) -> bool:
        """Whether the session would leave the partition out, as `PartitionFetch.note_answer` finds it."""
        fetch = result.fetch
        return (
            self._session is not None
            and result.error == ErrorCode.NONE
            and result.high_watermark == fetch.sent_high_watermark
            and result.log_start_offset == fetch.sent_log_start_offset
            and result.diverging_epoch is None
            and result.preferred_read_replica == NO_PREFERRED_REPLICA
            and not result.size_in_bytes
        )

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The response for `answers`, in their order; a session is created or moved on by it."""
        if self.error != ErrorCode.NONE:
            return FetchResponse(error_code=self.error, session_id=INVALID_SESSION_ID)
        session = self._session
        if session is not None:
            if session.epoch != self._expected_epoch:  # the same session went on over another connection meanwhile
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
            return FetchResponse(session_id=session.session_id, responses=_by_topic(session.select(answers)))
        session_id = INVALID_SESSION_ID
        if self._full:
            created = self._cache.maybe_create(
                answers,
                privileged=self._is_follower,
                uses_topic_ids=self._version >= TOPIC_ID_VERSION,
                now_ms=now_ms,
            )
            session_id = INVALID_SESSION_ID if created is None else created.session_id
        return FetchResponse(session_id=session_id, responses=_by_topic(answers))


def _by_topic(answers: Answers) -> list[FetchableTopicResponse]:
    """Consecutive partitions of one topic share an entry; the order of partitions stays."""
    topics: list[FetchableTopicResponse] = []
    last: tuple[str | None, bytes] | None = None
    for fetch, data in answers:
        if last != (fetch.topic, fetch.topic_id):
            last = (fetch.topic, fetch.topic_id)
            topics.append(FetchableTopicResponse(topic=fetch.topic or "", topic_id=fetch.topic_id, partitions=[]))
        topics[-1].partitions.append(data)
    return topics


def new_context(
    cache: FetchSessionCache,
    request: FetchRequest,
    version: int,
    topic_name: Callable[[bytes], str | None],
    *,
    is_follower: bool,
    now_ms: int,
) -> FetchContext:
    """What `request` means.

    `topic_name` resolves the topic ids that versions 13 on use; unknown ones keep topic None.
    """
    requested = _requested(request, version, topic_name)
    epoch, session_id = request.session_epoch, request.session_id
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if session_id != INVALID_SESSION_ID:
            cache.remove(session_id)
        return FetchContext(cache, requested, version=version, full=epoch == INITIAL_EPOCH, is_follower=is_follower)
    session = cache.get(session_id)
    if session is None:
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != epoch:
        return FetchContext(cache, (), version=version, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids != (version >= TOPIC_ID_VERSION):
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    size = len(session.partitions)
    session.update(requested, _forgotten(request, version))
    if len(session.partitions) > size and not cache.has_room_for(0):
        cache.remove(session_id)  # the client starts over with a full fetch, which needs no session
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if not session.partitions:
        cache.remove(session_id)
        return FetchContext(cache, requested, version=version)
    cache.touch(session, now_ms)
    session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
    for fetch in session.partitions.values():
        if fetch.topic is None:
            fetch.topic = topic_name(fetch.topic_id)
    return FetchContext(cache, session.partitions.values(), version=version, session=session)


def _requested(
    request: FetchRequest, version: int, topic_name: Callable[[bytes], str | None]
) -> Iterable[PartitionFetch]:
    found: dict[Key, PartitionFetch] = {}  # a partition named twice counts once, as last named
    for topic in request.topics:
        name = topic.topic if version < TOPIC_ID_VERSION else topic_name(topic.topic_id)
        for part in topic.partitions:
            fetch = PartitionFetch(
                name,
                topic.topic_id,
                part.partition,
                fetch_offset=part.fetch_offset,
                max_bytes=part.partition_max_bytes,
                current_leader_epoch=part.current_leader_epoch,
                log_start_offset=part.log_start_offset,
                last_fetched_epoch=part.last_fetched_epoch,
            )
            found[fetch.key] = fetch
    return found.values()


def _forgotten(request: FetchRequest, version: int) -> Iterable[Key]:
    for topic in request.forgotten_topics_data:
        name: bytes | str = topic.topic if version < TOPIC_ID_VERSION else topic.topic_id
        for partition in topic.partitions:
            yield (name, partition)
