"""Counts requests by API: how many, how long each part took, how large they were, how they ended.

Every request and every error is counted. Times and sizes are taken of a sample, `SAMPLES_PER_SECOND` of each API and
version: to time each request would cost a tenth to a sixth of the processor time of small ones. A request of the sample
stands for those since the one before it, so that busy minutes weigh more than idle ones. Below that rate every request
is in it, but for those after the first `SAMPLES_A_BURST` of a burst, and for one or two after a busy time.

Kafka: RequestMetrics, RequestChannel.Metrics, RequestChannel.updateErrorMetrics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.metrics.error_counts import Counts, counting, has_own_code_only
from odradek.protocol.api import API, ApiKey
from odradek.protocol.deprecated_versions import is_deprecated
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import (
        ClientConnection,
        RequestContext,
        RequestCounter,
        RequestObserver,
        RequestTimes,
    )
    from odradek.protocol.codec.schema import Request, Response
    from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
    from odradek.timer.sliced_work import Steps

CONSUMER_FETCH: Final = "FetchConsumer"
FOLLOWER_FETCH: Final = "FetchFollower"
VERIFY_PARTITIONS_IN_TXN: Final = "AddPartitionsToTxnVerification"

GENERATION_MS: Final = 60_000

SAMPLES_PER_SECOND: Final = 5
"""Requests whose times are taken: 1,500 in the five minutes of a histogram, of which Apache Kafka keeps 1028."""

ADJUST_EVERY_MS: Final = 1_000 // SAMPLES_PER_SECOND
"""The shares of the sample are chosen anew as often: so that one request is wanted each time."""

SAMPLES_A_BURST: Final = 4
"""After so many within that time, the share of the sample is halved; the first time it falls to `FIRST_SHARE`."""

FIRST_SHARE: Final = 128
"""One in so many. Where load sets in, every request is in the sample at first: of 250 requests at once, 5 are."""

FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_TRANSACTIONS: Final = 4

_HALF_MS: Final = 500_000
_MS: Final = 1_000_000


MAX_DEPRECATED: Final = 200
"""Clients choose the names and versions of their software. Of an API in a deprecated version so many are told apart,
and the rest is counted together as `OTHER_SOFTWARE`.
"""

MAX_SOFTWARE_CHARS: Final = 100
"""Of a name and version together, which a client could make 64 KB long: longer ones are counted as `OTHER_SOFTWARE`."""

OTHER_SOFTWARE: Final = ("other", "other")


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
        self.by_version: Counts = defaultdict(int)
        self.errors: Counts = defaultdict(int)
        """Error code -> how often a response had it, 0 for success."""
        self.deprecated: dict[int, Counter[tuple[str, str]]] = {}
        """Deprecated version -> name and version of the client software -> its requests."""
        self.times = tuple(Histogram() for _ in self.TIMES)
        """In the order of `TIMES`."""
        self.request_bytes = Histogram()
        self.message_conversions_time = Histogram()
        """Of Fetch and Produce: the time of writing records anew."""
        self.temporary_memory_bytes = Histogram()
        """Of Fetch and Produce: the memory that this took."""
        self._mostly_zero = (*self.times, self.message_conversions_time, self.temporary_memory_bytes)
        self._weight = 0
        """Of the sample since the last generation began."""

    def count_deprecated(self, version: int, connection: ClientConnection) -> None:
        """A request in a deprecated version has come (KIP-896)."""
        counts = self.deprecated.get(version)
        if counts is None:
            counts = self.deprecated[version] = Counter()
        software = name, software_version = connection.client_software_name, connection.client_software_version
        is_short = len(name) + len(software_version) <= MAX_SOFTWARE_CHARS
        is_told_apart = is_short and (software in counts or len(counts) < MAX_DEPRECATED)
        counts[software if is_told_apart else OTHER_SOFTWARE] += 1

    def completed(self, size: int, times: RequestTimes) -> None:
        """A request of the sample is over. Only values above 0 go into the histograms here: most are 0."""
        weight = times.weight
        self._weight += weight
        self.request_bytes.update(size, weight)
        if times.throttle_ms or times.temporary_bytes or times.completed_ns - times.started_ns >= _HALF_MS:
            self._update(times, weight)

    def _update(self, times: RequestTimes, weight: int) -> None:
        """Of a request that took some time: no part of it takes longer than the whole."""
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
        conversions = (times.message_conversions_ns + _HALF_MS) // _MS
        parts = (
            queue,
            local,
            remote,
            times.throttle_ms,
            response_queue,
            send,
            total,
            conversions,
            times.temporary_bytes,
        )
        for histogram, value in zip(self._mostly_zero, parts, strict=True):
            if value:
                histogram.update(value, weight)

    def settle(self) -> None:
        """Let the histograms count all requests, not only what the sample stands for."""
        self._add_zeros()
        count = sum(self.by_version.values())
        for histogram in (self.request_bytes, *self._mostly_zero):
            histogram.count = count

    def _add_zeros(self) -> None:
        """The part of the sample that is not in a histogram has the value 0."""
        for histogram in self._mostly_zero:
            current = histogram.current
            if zeros := self._weight - sum(current.values()) + current.get(0, 0):
                current[0] = zeros

    def begin_generation(self) -> None:
        """Drop the oldest minute of the histograms."""
        self._add_zeros()
        self._weight = 0
        for histogram in (self.request_bytes, *self._mostly_zero):
            histogram.begin_generation()


class ApiCounter:
    """Counts the requests of one API in one version. Implements `RequestCounter` and, for the sample,
    `RequestObserver`.
    """

    CODES_OF_A_PLAIN_RESPONSE = 1
    """How many error codes are counted of a response without errors, with one partition if these have codes."""

    __slots__ = (
        "_count_errors",
        "_every",
        "_gap",
        "_meters",
        "_metrics",
        "_name",
        "_samples",
        "_seen",
        "_seen_before",
        "_version",
        "_weight",
        "is_counted_by_request",
        "left",
        "plain",
        "plain_codes",
        "requests",
    )

    def __init__(self, meters: RequestMeters, key: ApiKey, version: int) -> None:
        self._name = API[key].name
        self._version = version
        self._meters = meters
        self._metrics = meters.of(self._name)
        self._count_errors = counting(API[key].response_type())
        self.is_counted_by_request = is_deprecated(key, version)
        self.requests = 0
        """Since the last scrape, without the next ones."""
        self.plain = 0
        """Requests whose responses have `CODES_OF_A_PLAIN_RESPONSE` codes and no error, the most frequent ones. The
        handlers of Produce, Fetch and OffsetCommit count theirs here.
        """
        self.plain_codes = 0
        """Codes of these responses, all without an error, beyond `CODES_OF_A_PLAIN_RESPONSE` of each."""
        self._every = 1
        """One request of so many is in the sample."""
        self.left = self._gap = 1
        """`_gap`: how many requests the next one of the sample stands for, itself and those before it."""
        self._samples = 0
        """Since the share was last chosen."""
        self._seen = 0
        """The requests since then, without those since the last one of the sample."""
        self._seen_before = 0
        """The same, of the last time that had requests, and all of them."""
        self._weight = 1
        """How many requests the last one of the sample stands for."""

    # Of each request

    def of_followers(self) -> RequestCounter:
        raise NotImplementedError("for Fetch")

    def count_request(self, ctx: RequestContext, request: Request) -> None:
        self._metrics.count_deprecated(self._version, ctx.connection)

    def count_response(self, ctx: RequestContext, response: Response | None) -> None:
        self.requests += 1
        self._count_codes(ctx, response)

    def _count_codes(self, ctx: RequestContext, response: Response | None) -> None:
        steps = None if response is None else self._count_errors(response, self._metrics.errors)
        for _ in steps or ():
            if ctx.slices is not None:  # else the response is known to be small
                ctx.slices.submit(cast("Steps", steps))
                return

    def settle(self) -> None:
        """Let the counters of the API have what was counted here."""
        if self.plain:
            self.requests += self.plain
            self._metrics.errors[ErrorCode.NONE] += self.plain * self.CODES_OF_A_PLAIN_RESPONSE + self.plain_codes
            self.plain = self.plain_codes = 0
        if self.requests:
            self._metrics.by_version[self._version] += self.requests
            self.requests = 0

    # Of the sample

    def sample(self) -> RequestObserver:
        self._samples += 1
        self._weight = self._gap
        self._seen += self._gap
        if not self._samples % SAMPLES_A_BURST:
            self._every = max(FIRST_SHARE, 2 * self._every)  # load sets in: `adjust` comes too late
        self.left = self._gap = self._every
        return self

    def adjust(self, elapsed_ms: int) -> None:
        """Choose the share of the sample by the requests of the last `elapsed_ms`.

        An API without requests keeps its share: where load comes in bursts, the next one needs it again. The share is
        that of the busier one of the last two times with requests, because a burst may end soon after this call.
        """
        pending = self._gap - self.left
        seen = self._seen + pending
        if not seen:
            return
        wanted = max(1, SAMPLES_PER_SECOND * elapsed_ms // 1000)
        self._every = max(1, seen // wanted, self._seen_before // wanted)
        self.left = max(1, min(self.left, self._every - pending))
        self._gap = pending + self.left
        self._samples = 0
        self._seen, self._seen_before = -pending, seen

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        assert ctx.times is not None
        ctx.times.weight = self._weight

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        """Nothing: `count_response` counts the errors."""

    def request_completed(self, ctx: RequestContext) -> None:
        assert ctx.times is not None
        self._metrics.completed(ctx.size, ctx.times)


class OwnCodeCounter(ApiCounter):
    """Counts responses of types that have one error code, their own: Heartbeat, FindCoordinator, SyncGroup."""

    __slots__ = ()

    def count_response(self, ctx: RequestContext, response: Response | None) -> None:
        if response is not None and not response.error_code:  # type: ignore[attr-defined]
            self.plain += 1
        else:
            super().count_response(ctx, response)


class FetchCounter(ApiCounter):
    """A Fetch counts as one, and as one of a consumer or of a follower."""

    CODES_OF_A_PLAIN_RESPONSE = 2

    __slots__ = ("_followers",)

    def __init__(self, meters: RequestMeters, key: ApiKey, version: int) -> None:
        super().__init__(meters, key, version)
        self._followers: FollowerFetchCounter | None = None

    def of_followers(self) -> RequestCounter:
        if self._followers is None:
            self._followers = FollowerFetchCounter(self._meters, ApiKey.FETCH, self._version)
        return self._followers

    def settle(self) -> None:
        self._settle_as(CONSUMER_FETCH)
        if self._followers is not None:
            self._followers.settle()

    def _settle_as(self, name: str) -> None:
        if requests := self.requests + self.plain:
            self._meters.of(name).by_version[self._version] += requests
        super().settle()

    def count_request(self, ctx: RequestContext, request: Request) -> None:
        super().count_request(ctx, request)
        self._meters.of(self._name_of(request)).count_deprecated(self._version, ctx.connection)

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        super().request_decoded(ctx, request)
        assert ctx.times is not None
        ctx.times.metric_name = self._name_of(request)

    def _name_of(self, request: Request) -> str:
        assert isinstance(request, FetchRequest)
        has_state = self._version >= FIRST_VERSION_WITH_REPLICA_STATE
        replica_id = request.replica_state.replica_id if has_state else request.replica_id
        return FOLLOWER_FETCH if replica_id >= 0 else CONSUMER_FETCH

    def request_completed(self, ctx: RequestContext) -> None:
        super().request_completed(ctx)
        assert ctx.times is not None
        self._meters.of(ctx.times.metric_name).completed(ctx.size, ctx.times)


class FollowerFetchCounter(FetchCounter):
    """Counts the responses to followers; the sample is taken of all Fetch requests together."""

    __slots__ = ()

    def settle(self) -> None:
        self._settle_as(FOLLOWER_FETCH)


class AddPartitionsToTxnCounter(ApiCounter):
    """A request whose transactions are all only verified (KIP-890) counts under another name."""

    __slots__ = ()

    def __init__(self, meters: RequestMeters, key: ApiKey, version: int) -> None:
        super().__init__(meters, key, version)
        self.is_counted_by_request = True

    def count_request(self, ctx: RequestContext, request: Request) -> None:
        self._meters.of(self._name_of(request)).by_version[self._version] += 1

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        super().request_decoded(ctx, request)
        assert ctx.times is not None
        ctx.times.metric_name = self._name_of(request)

    def request_completed(self, ctx: RequestContext) -> None:
        assert ctx.times is not None
        self._meters.of(ctx.times.metric_name).completed(ctx.size, ctx.times)

    def count_response(self, ctx: RequestContext, response: Response | None) -> None:
        self._count_codes(ctx, response)

    def _name_of(self, request: Request) -> str:
        transactions = cast("AddPartitionsToTxnRequest", request).transactions
        if self._version >= FIRST_VERSION_WITH_TRANSACTIONS and all(one.verify_only for one in transactions):
            return VERIFY_PARTITIONS_IN_TXN
        return self._name


_COUNTERS: Final = {
    ApiKey.FETCH: FetchCounter,
    ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnCounter,
}


class RequestMeters:
    """The counters of all APIs, by Kafka's name of the request. Implements `RequestCounters`."""

    def __init__(self) -> None:
        self.by_name: dict[str, RequestMetrics] = {}
        self._counters: list[ApiCounter] = []
        self._generation_ms = 0
        """How long the generation of the histograms has lasted."""
        self._unadjusted_ms = 0
        """How long ago the shares of the sample were chosen."""

    def counter(self, key: ApiKey, version: int) -> RequestCounter:
        plain = OwnCodeCounter if has_own_code_only(API[key].response_type()) else ApiCounter
        counter = _COUNTERS.get(key, plain)(self, key, version)
        self._counters.append(counter)
        return counter

    def adjust(self, elapsed_ms: int) -> None:
        """Another `elapsed_ms` are over. Every `ADJUST_EVERY_MS` choose the shares of the sample by the requests since
        then; once a minute, drop the oldest minute of the histograms.
        """
        self._unadjusted_ms += elapsed_ms
        if self._unadjusted_ms >= ADJUST_EVERY_MS:
            for counter in self._counters:
                counter.adjust(self._unadjusted_ms)
            self._unadjusted_ms = 0
        self._generation_ms += elapsed_ms
        if self._generation_ms >= GENERATION_MS:
            self._generation_ms = 0
            for metrics in self.by_name.values():
                metrics.begin_generation()

    def settle(self) -> None:
        """Let `by_name` have all requests that are counted."""
        for counter in self._counters:
            counter.settle()

    def of(self, name: str) -> RequestMetrics:
        """The counters of a name, made with its first request."""
        metrics = self.by_name.get(name)
        if metrics is None:
            metrics = self.by_name[name] = RequestMetrics()
        return metrics


def error_name(code: int) -> str:
    """Kafka's name of an error code, as the label of a metric."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
