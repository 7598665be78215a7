"""A broker that has nothing but fetch sessions, for tests of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from odradek.broker.fetch.fetch_context import AskedBy, FetchContext, new_context
from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from odradek.timer.sliced_work import run_through

TOPIC_ID = b"\x01" * 16


class Broker:
    """A session cache and a clock; no partition rests, and every partition answers what `data` says."""

    def __init__(self, max_sessions: int = 10) -> None:
        self.now_ms = 0
        self.names = {TOPIC_ID: "t"}
        ids = iter(range(1, 1_000_000))
        self.cache = FetchSessionCache(max_sessions, lambda low, high: next(ids))

    def open(self, request: FetchRequest, version: int = 12, *, is_follower: bool = False) -> FetchContext:
        return run_through(self.opening(request, version, is_follower=is_follower))

    def opening(
        self, request: FetchRequest, version: int = 12, *, is_follower: bool = False
    ) -> Generator[None, None, FetchContext]:
        request.replica_id = request.replica_state.replica_id = 1 if is_follower else -1
        asked_by = AskedBy.of(request, version)
        return new_context(self.cache, request, version, self.names.get, asked_by=asked_by, now_ms=self.now_ms)

    def fetch(
        self,
        request: FetchRequest,
        data: dict[int, PartitionData] | None = None,
        version: int = 12,
        *,
        is_follower: bool = False,
    ) -> FetchResponse:
        context = self.open(request, version, is_follower=is_follower)
        data = data or {}
        answers = [(fetch, data.get(fetch.partition, told(fetch.partition))) for fetch in context.partitions]
        return run_through(context.respond(answers, self.now_ms))


def told(partition: int, *, high_watermark: int = 0, records: bytes = b"", error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
    )


def request(
    *partitions: int, session: int = 0, epoch: int = 0, offset: int = 0, forget: Sequence[int] = ()
) -> FetchRequest:
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=p, fetch_offset=offset) for p in partitions])
        ]
        if partitions
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def named(response: FetchResponse) -> list[int]:
    return [part.partition_index for topic in response.responses for part in topic.partitions]
