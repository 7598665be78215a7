"""Counts requests by API: how many, how long each part took, how large they were, how they ended.

Every request and every error is counted. Times and sizes are taken of a sample of `SAMPLES_PER_SECOND`: to time each
request would cost a fifth of the processor time of small ones. A request of the sample stands for as many as there are
between two of them, so that busy minutes weigh more than idle ones. Below that rate every request is in it.

Kafka: RequestMetrics, RequestChannel.Metrics, RequestChannel.updateErrorMetrics.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from odradek.broker.metrics.error_counts import Counts, count_errors
from odradek.protocol.api import API, ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from odradek.broker.network.request import RequestContext, RequestObserver, RequestTimes
    from odradek.protocol.codec.schema import Request, Response

CONSUMER_FETCH: Final = "FetchConsumer"
FOLLOWER_FETCH: Final = "FetchFollower"
VERIFY_PARTITIONS_IN_TXN: Final = "AddPartitionsToTxnVerification"

GENERATION_NS: Final = 60_000_000_000

SAMPLES_PER_SECOND: Final = 200
"""Requests whose times are taken: they cost less than half a per cent of a core."""

SAMPLES_A_BURST: Final = 40
"""After so many within a tick, the share of the sample is halved."""

_ADD_PARTITIONS_TO_TXN: Final = int(ApiKey.ADD_PARTITIONS_TO_TXN)

FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_TRANSACTIONS: Final = 4

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
        self.by_version: defaultdict[int, int] = defaultdict(int)
        self.errors: Counts = defaultdict(int)
        """Error code -> how often a response had it, 0 for success."""
        self.times = tuple(Histogram() for _ in self.TIMES)
        """In the order of `TIMES`."""
        self.request_bytes = Histogram()

    def completed(self, size: int, times: RequestTimes) -> None:
        """A request of the sample is over."""
        weight = times.weight
        self.request_bytes.update(size, weight)
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
        total = (times.completed_ns - times.started_ns + _HALF_MS) // _MS
        parts = (queue, local, remote, times.throttle_ms, response_queue, send, total)
        for histogram, value in zip(self.times, parts, strict=True):
            histogram.update(value, weight)

    def settle(self) -> None:
        """Let the histograms count all requests, not only what the sample stands for."""
        count = sum(self.by_version.values())
        for histogram in (*self.times, self.request_bytes):
            histogram.count = count

    def begin_generation(self) -> None:
        for histogram in (*self.times, self.request_bytes):
            histogram.begin_generation()


class RequestMeters:
    """The counters of all APIs, by Kafka's name of the request. Implements `RequestCounter` and `RequestObserver`."""

    def __init__(self) -> None:
        self.by_name: dict[str, RequestMetrics] = {}
        self._by_key: dict[int, RequestMetrics] = {}
        self._every = 1
        """One request of so many is in the sample."""
        self.left = 1
        self._samples = 0
        self._generation_ends_ns = 0

    # Of each request

    def sample(self) -> RequestObserver:
        self._samples += 1
        if not self._samples % SAMPLES_A_BURST:
            self._every *= 2  # load sets in: `adjust` comes too late
        self.left = self._every
        return self

    def adjust(self, elapsed_ms: int) -> None:
        """Choose the share of the sample by the requests of the last `elapsed_ms`."""
        wanted = max(1, SAMPLES_PER_SECOND * elapsed_ms // 1000)
        self._every = max(1, self._every * self._samples // wanted)
        self.left = min(self.left, self._every)
        self._samples = 0

    def count_request(self, ctx: RequestContext, request: Request) -> None:
        version = ctx.header.api_version
        if isinstance(request, FetchRequest):
            self.of(_fetch_name(request, version)).by_version[version] += 1
        elif isinstance(request, AddPartitionsToTxnRequest):
            self.of(_add_partitions_name(request, version)).by_version[version] += 1

    def count_response(self, ctx: RequestContext, response: Response | None) -> None:
        header = ctx.header
        key = header.api_key
        metrics = self._by_key.get(key) or self._new(key)
        if key != _ADD_PARTITIONS_TO_TXN:
            metrics.by_version[header.api_version] += 1
        if response is not None:
            count_errors(response, metrics.errors)

    # Of the sample

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        times, version = ctx.times, ctx.header.api_version
        assert times is not None
        if isinstance(request, FetchRequest):
            times.metric_name = _fetch_name(request, version)
        elif isinstance(request, AddPartitionsToTxnRequest):
            times.metric_name = _add_partitions_name(request, version)
        else:
            times.metric_name = API[ApiKey(ctx.header.api_key)].name
        times.weight = self._every

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        """Nothing: `count_response` counts the errors."""

    def request_completed(self, ctx: RequestContext) -> None:
        times = ctx.times
        assert times is not None
        if times.completed_ns >= self._generation_ends_ns:
            self._generation_ends_ns = times.completed_ns + GENERATION_NS
            for metrics in self.by_name.values():
                metrics.begin_generation()
        self.of(times.metric_name).completed(ctx.size, times)
        if ctx.header.api_key == ApiKey.FETCH:
            self.of("Fetch").completed(ctx.size, times)

    def of(self, name: str) -> RequestMetrics:
        metrics = self.by_name.get(name)
        if metrics is None:
            metrics = self.by_name[name] = RequestMetrics()
        return metrics

    def _new(self, key: int) -> RequestMetrics:
        metrics = self._by_key[key] = self.of(API[ApiKey(key)].name)
        return metrics


def _fetch_name(request: FetchRequest, version: int) -> str:
    replica_id = request.replica_id if version < FIRST_VERSION_WITH_REPLICA_STATE else request.replica_state.replica_id
    return FOLLOWER_FETCH if replica_id >= 0 else CONSUMER_FETCH


def _add_partitions_name(request: AddPartitionsToTxnRequest, version: int) -> str:
    """Apart if all its transactions are only verified (KIP-890)."""
    if version >= FIRST_VERSION_WITH_TRANSACTIONS and all(one.verify_only for one in request.transactions):
        return VERIFY_PARTITIONS_IN_TXN
    return "AddPartitionsToTxn"


def error_name(code: int) -> str:
    """Kafka's name of an error code, as the label of a metric."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
