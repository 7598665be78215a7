"""Fetches records for a consumer: one Fetch request is under way to each leader, and one piece is handed out at a time.

A partition is fetched again when its last answer is used up, which bounds memory by what one round of requests returns.
After an error that new metadata or time may mend, the partition waits for a back-off. An offset that is not in the log
any more is reset as `auto_offset_reset` says.

Kafka: Fetcher, FetchCollector, SubscriptionState.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.command.socket_loop import Background, Event
from odradek.broker.tools.data.client.cluster_view import NO_TOPIC_ID
from odradek.broker.tools.data.consumer.completed_fetch import CompletedFetch
from odradek.broker.tools.data.consumer.offset_choice import OffsetChoice
from odradek.broker.tools.data.consumer.start_offsets import find_offsets
from odradek.broker.tools.data.records.record_format import ConsumedRecord
from odradek.protocol.errors import RETRIABLE, ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.records.errors import CorruptRecordError, DecompressionError, InvalidRecordError
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.protocol.messages.fetch import PartitionData
    from odradek.protocol.records.record import Record

VERSION_WITHOUT_TOPIC_IDS: Final = 12
TIMEOUT_MARGIN_MS: Final = 30_000
"""Added to the time that a broker may hold a Fetch request."""


class FetchConfig(NamedTuple):
    """Settings, with the defaults of Apache Kafka's consumer."""

    auto_offset_reset: OffsetChoice | None = None
    """None: an offset that is not in the log is an error."""
    check_crcs: bool = True
    client_rack: str = ""
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    """Of one batch."""
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    read_committed: bool = False


class PartitionState:
    """An assigned partition. It is replaced, not reused, when it is assigned again."""

    __slots__ = (
        "consumed",
        "end",
        "failing_since_ms",
        "is_busy",
        "is_revoked",
        "not_before_ms",
        "position",
        "read_replica",
        "start",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, start: OffsetChoice, position: int | None = None) -> None:
        self.topic_partition = topic_partition
        self.start = start
        """Where to begin while `position` is unknown."""
        self.position = position
        """The offset to fetch next; None before it is known."""
        self.end: int | None = None
        """Records from this offset on are left out."""
        self.consumed: int | None = None
        """Behind the last record that the user is done with: what is committed."""
        self.is_busy = False
        """A request for it is under way, or its last answer is not used up."""
        self.is_revoked = False
        self.not_before_ms = 0
        self.failing_since_ms: int | None = None
        """When the first of its tries failed since it was last answered without an error; None if none did."""
        self.read_replica: int | None = None
        """A follower that the leader has named (KIP-392)."""

    @property
    def is_finished(self) -> bool:
        """All records before `end` are handed out."""
        return self.end is not None and self.position is not None and self.position >= self.end


class Chunk(NamedTuple):
    """Records of one partition, in order."""

    state: PartitionState
    records: list[ConsumedRecord]
    next_offset: int
    """Behind the last of them."""


class _Answer(NamedTuple):
    state: PartitionState
    completed: CompletedFetch
    records: Iterator[tuple[Record, int]]
    broker_id: int


class Fetcher:
    """Fetches the partitions of `assign`."""

    def __init__(self, client: DataClient, config: FetchConfig) -> None:
        self._client = client
        self._config = config
        self.states: dict[TopicPartition, PartitionState] = {}
        self._answers: deque[_Answer] = deque()
        self._busy: set[int] = set()
        self._tasks = Background()
        self._failure: CommandFailed | None = None
        self._news = Event()
        self._is_refreshing = False

    def assign(self, states: Iterable[PartitionState]) -> None:
        """Fetch these partitions from now on, and no others."""
        for state in self.states.values():
            state.is_revoked = True
        self.states = {state.topic_partition: state for state in states}
        self._answers.clear()

    def add(self, states: Iterable[PartitionState]) -> None:
        """Fetch these partitions, too."""
        self.states |= {state.topic_partition: state for state in states}

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Do not fetch these partitions any more."""
        for key in keys:
            self.states.pop(key).is_revoked = True

    async def poll(self, timeout_ms: int) -> Chunk | None:
        """The next records of one partition; None if there are none in this time.

        Raises: CommandFailed if a partition cannot be read.
        """
        chunk = self._next_chunk()
        if chunk is not None:
            self._begin_fetches()  # their answers arrive while the user writes these records
            return chunk
        self._news = Event()
        self._begin_fetches()
        if not self._answers and self._failure is None:
            await self._client.wait(self._shorter(timeout_ms), self._news)
        if self._failure is not None:
            raise self._failure
        return self._next_chunk()

    async def close(self) -> None:
        """Stop fetching."""
        await self._tasks.close()

    def _shorter(self, timeout_ms: int) -> int:
        """The time until a partition may be fetched again after its back-off, if that comes first."""
        now_ms = self._client.clock.monotonic_ms()
        waits = (state.not_before_ms - now_ms for state in self.states.values() if not state.is_busy)
        return min((wait for wait in waits if wait > 0), default=timeout_ms) if timeout_ms else 0

    # Handing out

    def _next_chunk(self) -> Chunk | None:
        while self._answers:
            answer = self._answers[0]
            if answer.state.is_revoked:
                self._answers.popleft()
                continue
            chunk = self._chunk(answer)
            if not answer.state.is_busy:
                self._answers.popleft()
            if chunk.records or chunk.next_offset != answer.state.consumed:
                return chunk
        return None

    def _chunk(self, answer: _Answer) -> Chunk:
        """The next records of an answer. The partition is not busy any more when they are the last."""
        state, completed = answer.state, answer.completed
        topic, partition = state.topic_partition
        try:
            taken = list(islice(answer.records, self._config.max_poll_records))
        except (CorruptRecordError, InvalidRecordError, DecompressionError) as error:
            raise CommandFailed(
                f"{state.topic_partition}: the records from offset {completed.next_offset} on cannot be read: {error}"
            ) from error
        next_offset = completed.next_offset
        if len(taken) < self._config.max_poll_records:
            state.position = next_offset
            state.is_busy = False
        if state.end is not None and next_offset >= state.end:
            taken = [found for found in taken if found[0].offset < state.end]
            next_offset = state.position = state.end
            state.is_busy = False
        records = [ConsumedRecord(topic, partition, record, kind, answer.broker_id) for record, kind in taken]
        return Chunk(state, records, next_offset)

    # Fetching

    def _begin_fetches(self) -> None:
        now_ms = self._client.clock.monotonic_ms()
        ready = [state for state in self.states.values() if not state.is_busy and state.not_before_ms <= now_ms]
        if any(state.position is None for state in ready):
            lost = [state for state in ready if state.position is None]
            for state in lost:
                state.is_busy = True
            self._tasks.start(self._reset(lost))
        chosen: dict[int, list[PartitionState]] = {}
        for state in ready:
            if state.position is None or state.is_finished:
                continue
            node = self._node(state)
            if node is None:
                self._wait(state)
                self._refresh_later()
            elif node not in self._busy:
                chosen.setdefault(node, []).append(state)
        for node, states in chosen.items():
            self._busy.add(node)
            for state in states:
                state.is_busy = True
            self._tasks.start(self._fetch(node, states))

    def _node(self, state: PartitionState) -> int | None:
        if state.read_replica in self._client.cluster.nodes:
            return state.read_replica
        return self._client.cluster.leader(state.topic_partition)

    async def _fetch(self, node: int, states: list[PartitionState]) -> None:
        waiting = {state.topic_partition: state for state in states}
        try:
            request, version = self._request(states)
            response = await self._client.ask(
                node,
                request,
                FetchResponse,
                purpose="fetch",
                version=version,
                timeout_ms=self._config.fetch_max_wait_ms + TIMEOUT_MARGIN_MS,
            )
            for topic in response.responses:
                name = self._client.cluster.name_of(topic.topic, topic.topic_id)
                for data in topic.partitions:
                    state = waiting.pop(TopicPartition(name, data.partition_index), None)
                    if state is not None and not state.is_revoked:
                        self._answered(state, data, node)
        except OSError:
            self._refresh_later()
        finally:
            for state in waiting.values():  # no answer: later
                self._wait(state)
            self._busy.discard(node)
            self.wake()

    def _request(self, states: list[PartitionState]) -> tuple[FetchRequest, int | None]:
        """The request, and the version if not the highest is meant."""
        config = self._config
        by_topic: dict[str, list[FetchPartition]] = {}
        for state in states:
            assert state.position is not None
            by_topic.setdefault(state.topic_partition.topic, []).append(
                FetchPartition(
                    partition=state.topic_partition.partition,
                    fetch_offset=state.position,
                    partition_max_bytes=config.max_partition_fetch_bytes,
                )
            )
        topics = [
            FetchTopic(topic=name, topic_id=self._client.cluster.topic_id(name), partitions=partitions)
            for name, partitions in by_topic.items()
        ]
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.read_committed),
            rack_id=config.client_rack,
            topics=topics,
        )
        has_ids = all(topic.topic_id != NO_TOPIC_ID for topic in topics)
        return request, None if has_ids else VERSION_WITHOUT_TOPIC_IDS

    def _answered(self, state: PartitionState, data: PartitionData, broker_id: int) -> None:
        code = ErrorCode.for_code(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state)
        elif code in RETRIABLE or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._wait(state)
            self._refresh_later()
        elif code != ErrorCode.NONE:
            self._fail(CommandFailed(f"{state.topic_partition}: {error_text(code)}"))
        elif data.preferred_read_replica >= 0:
            state.read_replica = data.preferred_read_replica
            state.is_busy = False
        else:
            assert state.position is not None
            state.failing_since_ms = None
            completed = CompletedFetch(
                memoryview(cast("bytes", data.records or b"")),
                state.position,
                data.aborted_transactions or () if self._config.read_committed else None,
                check_crcs=self._config.check_crcs,
                max_decompressed_bytes=self._config.max_decompressed_bytes,
            )
            self._answers.append(_Answer(state, completed, iter(completed), broker_id))

    def _out_of_range(self, state: PartitionState) -> None:
        """Forget a position that is not in the log any more. A follower may only be behind: its leader is asked."""
        if state.read_replica is not None:
            self._wait(state)
            return
        reset = self._config.auto_offset_reset
        what = f"{state.topic_partition}: offset {state.position} is not in the log"
        if reset is None:
            self._fail(CommandFailed(f"{what}, and auto.offset.reset is none"))
            return
        sys.stderr.write(f"odradek: warning: {what}; reset to {reset.origin.value}\n")
        state.position = None
        state.start = reset
        state.is_busy = False

    async def _reset(self, states: list[PartitionState]) -> None:
        """Find the positions of partitions that have none."""
        try:
            found = await find_offsets(
                self._client,
                {state.topic_partition: state.start for state in states},
                read_committed=self._config.read_committed,
            )
            for state in states:
                offset = found.get(state.topic_partition)
                if offset is None:
                    self._wait(state)
                    self._refresh_later()
                else:
                    state.position = offset
                    state.consumed = offset
                    state.is_busy = False
                    state.failing_since_ms = None
        except CommandFailed as error:
            self._fail(error)
        finally:
            self.wake()

    def _wait(self, state: PartitionState) -> None:
        state.is_busy = False
        state.read_replica = None
        now_ms = self._client.clock.monotonic_ms()
        state.not_before_ms = now_ms + self._client.config.retry_backoff_ms
        if state.failing_since_ms is None:
            state.failing_since_ms = now_ms

    def _refresh_later(self) -> None:
        """Ask for new metadata, once at a time."""
        if not self._is_refreshing:
            self._is_refreshing = True
            self._tasks.start(self._refresh())

    async def _refresh(self) -> None:
        try:
            await self._client.refresh({topic for topic, _ in self.states})
        except CommandFailed:
            pass  # no broker answers at present; the partitions are fetched again after their back-off
        finally:
            self._is_refreshing = False
            self.wake()

    def _fail(self, failure: CommandFailed) -> None:
        self._failure = self._failure or failure

    def wake(self) -> None:
        """Let `poll` look again."""
        self._news.set()
