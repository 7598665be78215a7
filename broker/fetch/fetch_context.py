"""Fetch requests with and without sessions (KIP-227): the partitions to read, and the response from their results.

A request carries (session id, epoch):

==================  =====================================================================================
id 0, epoch 0       a full fetch that asks for a session; the answer's id is 0 when the cache has no room
any id, epoch 0     the same, and the named session is closed
any id, epoch -1    a full fetch without a session; the named session is closed
id, epoch n > 0     incremental: topics are additions and changes, forgotten topics removals; n must be the
                    session's expected epoch, which then moves on (2147483647 → 1)
==================  =====================================================================================

Kafka: FetchManager.newContext, FetchContext, FullFetchContext, IncrementalFetchContext, SessionlessFetchContext,
SessionErrorContext.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final, NamedTuple

from odradek.broker.fetch.fetch_session import (
    PARTITIONS_A_STEP,
    Answers,
    FetchSession,
    Key,
    PartitionFetch,
    Refusals,
)
from odradek.broker.fetch.fetch_session_cache import INVALID_SESSION_ID, FetchSessionCache
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from odradek.protocol.new_tuple import new_tuple
from odradek.timer.sliced_work import listed

NO_EPOCH: Final = EpochEndOffset()
NO_LEADER: Final = LeaderIdAndEpoch()
NO_SNAPSHOT: Final = SnapshotId()
NONE_ABORTED: Final[list[AbortedTransaction]] = []
"""Most partitions of most answers have these, so they are shared, and never changed."""

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
TOPIC_ID_VERSION: Final = 13


class AskedBy(NamedTuple):
    """The reader, and all other fields of a request that affect the result of a read. Partitions of a session may rest
    while it stays the same.

    `replica_epoch` is the broker epoch of a follower, -1 if it names none. `replica_id` is negative for consumers.
    """

    replica_id: int
    replica_epoch: int
    version: int
    isolation_level: int
    rack_id: str
    has_limit: bool

    @classmethod
    def of(cls, request: FetchRequest, version: int) -> AskedBy:
        """The fields of `request`. Before v15 a follower does not name its broker epoch."""
        state = request.replica_state
        replica_id = state.replica_id if version >= 15 else request.replica_id
        has_limit = request.max_bytes >= 0
        return new_tuple(
            cls, (replica_id, state.replica_epoch, version, request.isolation_level, request.rack_id, has_limit)
        )

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class FetchContext:
    """One Fetch request.

    `partitions` are to be read: those of the request, or those of its session that do not rest. When the session cannot
    be used, `error` is set and `partitions` is empty.
    """

    __slots__ = (
        "_asked_by",
        "_cache",
        "_expected_epoch",
        "_full",
        "_version",
        "error",
        "may_have_session",
        "partitions",
        "session",
    )

    def __init__(
        self,
        cache: FetchSessionCache,
        partitions: Iterable[PartitionFetch],
        *,
        version: int,
        session: FetchSession | None = None,
        full: bool = False,
        asked_by: AskedBy | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self._cache = cache
        self._expected_epoch = None if session is None else session.epoch
        """Another connection has used the session since the request came if its epoch differs."""
        self._full = full
        self.may_have_session = full or session is not None
        """Whether the partitions belong to a session when the response is made, if there is room for a new one."""
        self._asked_by = asked_by
        self._version = version
        self.session = session
        self.partitions = list(partitions)
        self.error = error

    @property
    def has_resting(self) -> bool:
        """Whether the session has partitions that are not read for this request."""
        return self.session is not None and self.session.has_resting

    def respond(self, answers: Answers, now_ms: int, refused: Refusals = ()) -> Generator[None, None, FetchResponse]:
        """Build the response for `answers` and those that are `refused`, in their order, and the new session if one is
        requested, in steps.
        """
        if refused and (self._full or self.session is not None):
            answers, refused = (yield from _together(answers, refused)), ()
        if self.error != ErrorCode.NONE:
            return FetchResponse(error_code=self.error, session_id=INVALID_SESSION_ID)
        session = self.session
        if session is not None:
            if session.epoch != self._expected_epoch:
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
            topics = yield from _by_topic((yield from session.select(answers)))
            return FetchResponse(session_id=session.session_id, responses=topics)
        session_id = INVALID_SESSION_ID
        if self._full:
            assert self._asked_by is not None
            created = yield from self._cache.maybe_create(
                answers,
                privileged=self._asked_by.is_follower,
                uses_topic_ids=self._version >= TOPIC_ID_VERSION,
                now_ms=now_ms,
                asked_by=self._asked_by,
            )
            session_id = INVALID_SESSION_ID if created is None else created.session_id
        topics = yield from _by_topic(answers, refused)
        return FetchResponse(session_id=session_id, responses=topics)

    def preview(self, answers: Answers, refused: Refusals = ()) -> Generator[None, None, FetchResponse]:
        """The response as far as its size goes, without a change of the session or a new one.

        Kafka: FetchContext.getResponseSize.
        """
        session = self.session
        if self.error != ErrorCode.NONE or (session is not None and session.epoch != self._expected_epoch):
            return FetchResponse()
        if session is not None:
            answers, refused = (yield from _together(answers, refused)), ()
            changed = []
            for fetch, data in answers:
                yield
                cached = session.partitions.get(fetch.key)
                if cached is not None and cached.is_news(data):
                    changed.append((fetch, data))
            answers = changed
        return FetchResponse(responses=(yield from _by_topic(answers, refused)))

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        """The empty response of a client that is ahead of its quota. The session stays as it is.

        Kafka: FetchContext.getThrottledResponse.
        """
        session = self.session
        if session is None:
            return FetchResponse(throttle_time_ms=throttle_time_ms, session_id=INVALID_SESSION_ID)
        is_ours = session.epoch == self._expected_epoch
        error = ErrorCode.NONE if is_ours else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return FetchResponse(throttle_time_ms=throttle_time_ms, error_code=error, session_id=session.session_id)


def _together(answers: Answers, refused: Refusals) -> Generator[None, None, Answers]:
    return [*answers, *(yield from listed((fetch, refusal(fetch.partition, code)) for fetch, code in refused))]


def refusal(index: int, code: int) -> PartitionData:
    """The answer for a partition that is not read."""
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        diverging_epoch=NO_EPOCH,
        current_leader=NO_LEADER,
        snapshot_id=NO_SNAPSHOT,
        aborted_transactions=NONE_ABORTED,
        records=b"",
    )


def _by_topic(answers: Answers, refused: Refusals = ()) -> Generator[None, None, list[FetchableTopicResponse]]:
    """Group consecutive partitions of one topic; the order of partitions stays."""
    topics: list[FetchableTopicResponse] = []
    partitions: list[PartitionData] = []
    last: tuple[str | None, bytes] | None = None
    for number, (fetch, data) in enumerate(answers, 1):
        if number % PARTITIONS_A_STEP == 0:
            yield
        if last != (fetch.topic, fetch.topic_id):
            last, partitions = (fetch.topic, fetch.topic_id), []
            topic = FetchableTopicResponse(topic=fetch.topic or "", topic_id=fetch.topic_id, partitions=partitions)
            topics.append(topic)
        partitions.append(data)
    if refused:
        yield from _add_refused(topics, last, refused)
    return topics


def _add_refused(
    topics: list[FetchableTopicResponse], last: tuple[str | None, bytes] | None, refused: Refusals
) -> Generator[None, None, None]:
    """A request may name 60,000 partitions that do not exist: each needs ten bytes until the answer is encoded.

    `last`: the topic of the last element of `topics`.
    """
    found: Outcomes[int, PartitionData] = Outcomes(refusal)
    if last is not None and last == (refused[0][0].topic, refused[0][0].topic_id):
        for data in topics[-1].partitions:
            found.append(data)
        topics[-1].partitions = found
    for number, (fetch, code) in enumerate(refused, 1):
        if number % PARTITIONS_A_STEP == 0:
            yield
        if last != (fetch.topic, fetch.topic_id):
            if number > 1:
                topics[-1].partitions = found.smaller()
            last, found = (fetch.topic, fetch.topic_id), Outcomes(refusal)
            topics.append(FetchableTopicResponse(topic=fetch.topic or "", topic_id=fetch.topic_id, partitions=found))
        found.add(fetch.partition, code)
    topics[-1].partitions = found.smaller()


def new_context(
    cache: FetchSessionCache,
    request: FetchRequest,
    version: int,
    topic_name: Callable[[bytes], str | None],
    *,
    asked_by: AskedBy,
    now_ms: int,
) -> Generator[None, None, FetchContext]:
    """The context of `request`. The epoch of a session is checked and moved on in one step.

    `topic_name` resolves topic ids (v13 on) to names; topics with an unknown id have the name None.
    """
    epoch, session_id = request.session_epoch, request.session_id
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        requested = yield from _requested(request, version, topic_name)
        if session_id != INVALID_SESSION_ID:
            cache.remove(session_id)
        return FetchContext(cache, requested, version=version, full=epoch == INITIAL_EPOCH, asked_by=asked_by)
    session = cache.get(session_id)
    if session is None:
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != epoch:
        return FetchContext(cache, (), version=version, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids != (version >= TOPIC_ID_VERSION):
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    session.epoch = moved_on = 1 if epoch == MAX_EPOCH else epoch + 1
    forgotten = _forgotten(request, version) if request.forgotten_topics_data else ()
    yield from session.update(request.topics, forgotten, asked_by, topic_name)
    if session.epoch != moved_on:  # another connection has used the session meanwhile
        return FetchContext(cache, (), version=version, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.is_closed:  # evicted meanwhile
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if not session.partitions:
        cache.remove(session_id)
        requested = yield from _requested(request, version, topic_name)
        return FetchContext(cache, requested, version=version)
    cache.touch(session, now_ms)
    if cache.total_partitions > cache.max_partitions and not cache.evict_for(session, now_ms):
        cache.remove(session_id)  # the client starts over with a full fetch, which needs no session
        return FetchContext(cache, (), version=version, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    for fetch in session.awake:
        if fetch.topic is None:
            fetch.name_topic(topic_name(fetch.topic_id))
    return FetchContext(cache, session.to_read(), version=version, session=session)


def _requested(
    request: FetchRequest, version: int, topic_name: Callable[[bytes], str | None]
) -> Generator[None, None, Iterable[PartitionFetch]]:
    found: dict[Key, PartitionFetch] = {}  # of a partition that is named twice, the last one counts
    for topic in request.topics:
        name = topic.topic if version < TOPIC_ID_VERSION else topic_name(topic.topic_id)
        for part in topic.partitions:
            if found and len(found) % PARTITIONS_A_STEP == 0:
                yield
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
