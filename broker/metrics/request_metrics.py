"""Counts requests by API: how many, how long each part took, how large they were, how they ended.

Counted once a request. A request that took less than half a millisecond has 0 in every histogram of times: one addition
stands for all of them until they are read.

Kafka: RequestMetrics, RequestChannel.Metrics, RequestChannel.updateErrorMetrics.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from odradek.broker.metrics.error_counts import ErrorCounts
from odradek.protocol.api import API, ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
    from odradek.broker.network.request import RequestContext, RequestTimes
    from odradek.protocol.codec.schema import Request, Response

CONSUMER_FETCH: Final = "FetchConsumer"
FOLLOWER_FETCH: Final = "FetchFollower"
VERIFY_PARTITIONS_IN_TXN: Final = "AddPartitionsToTxnVerification"

GENERATION_NS: Final = 60_000_000_000

_HALF_MS: Final = 500_000
_MS: Final = 1_000_000


class RequestMetrics:
    """The counters of one API."""

    TIMES: Final = (
        "request_queue_time",
        "local_time",
        "remote_time",
        "throttle_time",
        "response_queue_time",
        "response_send_time",
        "total_time",
    )

    def __init__(self) -> None:
        self.by_version: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        """Error code -> how often a response had it, 0 for success."""
        self.times = tuple(Histogram() for _ in self.TIMES)
        """In the order of `TIMES`."""
        self.request_bytes = Histogram()
        self._short = 0
        """Requests of less than half a millisecond that are not in the histograms yet."""

    def completed(self, version: int, size: int, times: RequestTimes) -> None:
        self.by_version[version] = self.by_version.get(version, 0) + 1
        self.request_bytes.update(size)
        total_ns = times.completed_ns - times.started_ns
        if total_ns < _HALF_MS and not times.throttle_ms:
            self._short += 1
            return
        moments = (
            times.started_ns,
            times.dequeued_ns,
            times.local_completed_ns,
            times.response_completed_ns,
            times.response_dequeued_ns,
            times.completed_ns,
        )
        queue, local, remote, response_queue, send = (
            max(0, after - before + _HALF_MS) // _MS for before, after in pairwise(moments)
        )
        total = (total_ns + _HALF_MS) // _MS
        parts = (queue, local, remote, times.throttle_ms, response_queue, send, total)
        for histogram, value in zip(self.times, parts, strict=True):
            histogram.update(value)

    def settle(self) -> None:
        """Put the short requests into the histograms."""
        if self._short:
            for histogram in self.times:
                histogram.update(0, self._short)
            self._short = 0

    def begin_generation(self) -> None:
        self.settle()
        for histogram in (*self.times, self.request_bytes):
            histogram.begin_generation()


class RequestMeters:
    """The counters of all APIs, by Kafka's name of the request. Implements `RequestObserver`."""

    def __init__(self, topic_stats: BrokerTopicStats) -> None:
        self.by_name: dict[str, RequestMetrics] = {}
        self._topic_stats = topic_stats
        self._errors = ErrorCounts()
        self._generation_ends_ns = 0

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        times = ctx.times
        assert times is not None
        if isinstance(request, FetchRequest):
            replica_id = request.replica_id if ctx.header.api_version < 15 else request.replica_state.replica_id
            times.metric_name = FOLLOWER_FETCH if replica_id >= 0 else CONSUMER_FETCH
        elif isinstance(request, AddPartitionsToTxnRequest) and _is_verification(request, ctx.header.api_version):
            times.metric_name = VERIFY_PARTITIONS_IN_TXN
        else:
            times.metric_name = API[ApiKey(ctx.header.api_key)].name

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        if response is None:
            return
        times = ctx.times
        assert times is not None
        api = API[ApiKey(ctx.header.api_key)].name
        self._errors.add(response, self.of(api).errors)
        if isinstance(response, FetchResponse):
            self._count_sent(response, is_follower=times.metric_name == FOLLOWER_FETCH)

    def request_completed(self, ctx: RequestContext) -> None:
        times = ctx.times
        assert times is not None
        if times.completed_ns >= self._generation_ends_ns:
            self._generation_ends_ns = times.completed_ns + GENERATION_NS
            for metrics in self.by_name.values():
                metrics.begin_generation()
        header = ctx.header
        self.of(times.metric_name).completed(header.api_version, ctx.size, times)
        if header.api_key == ApiKey.FETCH:
            self.of("Fetch").completed(header.api_version, ctx.size, times)

    def of(self, name: str) -> RequestMetrics:
        metrics = self.by_name.get(name)
        if metrics is None:
            metrics = self.by_name[name] = RequestMetrics()
        return metrics

    def _count_sent(self, response: FetchResponse, *, is_follower: bool) -> None:
        for topic in response.responses:
            size = 0
            for data in topic.partitions:
                records = data.records
                if records is not None:
                    size += (
                        len(records) if isinstance(records, bytes | bytearray | memoryview) else records.size_in_bytes
                    )
            if is_follower:
                self._topic_stats.replication_bytes_out += size
            elif size:
                self._topic_stats.sent(topic.topic, size)


def _is_verification(request: AddPartitionsToTxnRequest, version: int) -> bool:
    """Whether all its transactions are only verified (KIP-890)."""
    return version >= 4 and all(transaction.verify_only for transaction in request.transactions)


def error_name(code: int) -> str:
    """Kafka's name of an error code, as the label of a metric."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
