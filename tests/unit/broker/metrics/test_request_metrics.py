from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from odradek.broker.metrics.error_counts import CODES_A_STEP
from odradek.broker.metrics.request_metrics import (
    ADJUST_EVERY_MS,
    GENERATION_MS,
    MAX_DEPRECATED,
    MAX_SOFTWARE_CHARS,
    OTHER_SOFTWARE,
    SAMPLES_A_BURST,
    SAMPLES_PER_SECOND,
    RequestMeters,
    RequestMetrics,
    error_name,
)
from odradek.broker.network.requests.request import (
    RequestContext,
    RequestCounter,
    RequestObserver,
    RequestTimes,
)
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import SlicedWork, Steps, run_through
from tests.support.in_process.connections.network import Sent
from tests.support.in_process.in_process_broker import FakeConnection

SOFTWARE = ("", "")
"""Of `FakeConnection`."""


def next_sample(counter: RequestCounter) -> RequestObserver | None:
    """As the dispatcher does with each request."""
    counter.left -= 1
    return None if counter.left else counter.sample()


class Meters:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.meters = RequestMeters()
        self.counters: dict[tuple[int, int], RequestCounter] = {}

    def counter(self, key: ApiKey, version: int) -> RequestCounter:
        """As the dispatcher finds it."""
        if (key, version) not in self.counters:
            self.counters[key, version] = self.meters.counter(key, version)
        return self.counters[key, version]

    def request(
        self, request: Request, version: int, response: Response | None, *ms: int, throttle_ms: int = 0
    ) -> None:
        """One request. `ms`: how long its handler, its wait and its sending took."""
        local_ms, remote_ms, send_ms = (*ms, 0, 0, 0)[:3]
        ctx = RequestContext(RequestHeader(ApiKey(request.API_KEY), version, 1), FakeConnection(), 0, 100)
        now_ns = self.clock.monotonic_ns
        counter = self.counter(ApiKey(request.API_KEY), version)
        observer = next_sample(counter)
        if counter.is_counted_by_request:
            counter.count_request(ctx, request)
        if isinstance(request, FetchRequest) and max(request.replica_id, request.replica_state.replica_id) >= 0:
            counter = counter.of_followers()  # as the handler does
        counter.count_response(ctx, response)
        if observer is None:
            return
        ctx.times = times = RequestTimes(observer, now_ns, now_ns())
        times.handling_begins(ctx, request)
        times.throttle_ms = throttle_ms
        self.clock.advance(local_ms)
        times.handler_returned()
        self.clock.advance(remote_ms)
        times.response_made(ctx, response)
        times.sending_begins(ctx, Sent().sender)
        self.clock.advance(send_ms)
        times.completed(ctx)

    def of(self, name: str) -> RequestMetrics:
        self.meters.settle()
        metrics = self.meters.by_name[name]
        metrics.settle()
        return metrics

    def medians(self, name: str) -> dict[str, int]:
        metrics = self.of(name)
        return {name: each.quantiles()[0] for name, each in zip(metrics.TIMES, metrics.times, strict=True)}


def test_requests_are_counted_by_version_and_their_times_by_part() -> None:
    meters = Meters()
    meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 2, 30, 5, throttle_ms=9)
    meters.request(HeartbeatRequest(), 3, HeartbeatResponse(error_code=25), 2, 30, 5, throttle_ms=9)
    heartbeat = meters.of("Heartbeat")
    assert heartbeat.by_version == {4: 1, 3: 1}
    assert heartbeat.errors == {0: 1, 25: 1}
    assert meters.medians("Heartbeat") == {
        "request_queue_time": 0,
        "local_time": 2,
        "remote_time": 30,
        "throttle_time": 9,
        "response_queue_time": 0,
        "response_send_time": 5,
        "total_time": 37,
    }
    assert heartbeat.request_bytes.quantiles()[0] == 100


def test_above_the_rate_of_samples_some_are_timed_and_all_are_counted() -> None:
    meters = Meters()
    requests = 80 * SAMPLES_PER_SECOND
    for _ in range(requests):
        meters.request(HeartbeatRequest(), 4, HeartbeatResponse(error_code=25), 7)
    heartbeat = meters.of("Heartbeat")
    timed = heartbeat.times[-1].values()
    assert list(timed) == [7]
    assert 0.9 * requests < timed[7] < 1.1 * requests
    assert [histogram.count for histogram in heartbeat.times] == [requests] * 7
    assert heartbeat.errors == {25: requests}
    assert heartbeat.by_version == {4: requests}


def test_the_share_of_the_sample_follows_the_rate() -> None:
    meters = RequestMeters()
    counter = meters.counter(ApiKey.HEARTBEAT, 4)

    def sampled_of(requests: int) -> int:
        found = sum(next_sample(counter) is not None for _ in range(requests))
        for _ in range(2):
            meters.adjust(ADJUST_EVERY_MS // 2)
        return found

    wanted = SAMPLES_PER_SECOND * ADJUST_EVERY_MS // 1_000
    assert sampled_of(40_000) < 13 * SAMPLES_A_BURST  # sets in at once
    for _ in range(8):
        sampled_of(40_000)
    assert 10 * wanted / 2 <= sum(sampled_of(40_000) for _ in range(10)) <= 10 * 2 * wanted
    for _ in range(2):  # the share is that of the busier one of two times
        sampled_of(wanted)
    assert sampled_of(wanted) == wanted


def test_few_requests_of_a_burst_are_timed() -> None:
    counter = RequestMeters().counter(ApiKey.HEARTBEAT, 4)
    sampled = sum(next_sample(counter) is not None for _ in range(250))
    assert sampled == SAMPLES_A_BURST + 1


def test_of_bursts_that_come_again_one_or_two_requests_are_timed() -> None:
    """Also if a burst goes on for a few requests after the share is chosen anew."""
    meters = RequestMeters()
    counter = meters.counter(ApiKey.HEARTBEAT, 4)
    for number in range(20):
        sampled = sum(next_sample(counter) is not None for _ in range(247))
        meters.adjust(ADJUST_EVERY_MS)
        sampled += sum(next_sample(counter) is not None for _ in range(3))
        for _ in range(50):
            meters.adjust(ADJUST_EVERY_MS)
        assert sampled <= 2 or not number


def test_a_request_of_the_sample_stands_for_exactly_those_since_the_one_before_it() -> None:
    meters = RequestMeters()
    counter = meters.counter(ApiKey.HEARTBEAT, 4)
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 1), FakeConnection(), 0, 100)
    since = 0
    for requests in (1, 300, 2, 0, 40, 0, 0, 1_000, 7, 7, 1, 0, 1, 1, 1, 3):
        for _ in range(requests):
            since += 1
            if (observer := next_sample(counter)) is not None:
                ctx.times = RequestTimes(observer, lambda: 0, 0)
                ctx.times.handling_begins(ctx, HeartbeatRequest())
                assert ctx.times.weight == since
                since = 0
        meters.adjust(ADJUST_EVERY_MS)
    assert since == 0, "at a low rate each is in the sample again"


def test_requests_at_the_rate_of_samples_are_all_timed_also_after_a_burst() -> None:
    """A request of the sample stands for those before it, not for those that may follow."""
    meters = Meters()
    for _ in range(SAMPLES_A_BURST):
        meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 7)
    for _ in range(10):
        meters.meters.adjust(ADJUST_EVERY_MS)
        meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 7)
    timed = meters.of("Heartbeat").times[-1].values()
    assert timed[7] == SAMPLES_A_BURST + 10


def test_values_of_0_are_what_is_left_of_the_sample() -> None:
    meters = Meters()
    for ms in (0, 3, 0):
        meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 0, ms)
    assert meters.of("Heartbeat").times[-1].values() == {0: 2, 3: 1}
    meters.meters.adjust(GENERATION_MS)
    meters.request(HeartbeatRequest(), 4, HeartbeatResponse())
    heartbeat = meters.of("Heartbeat")
    assert heartbeat.times[-1].values() == {0: 3, 3: 1}
    assert heartbeat.times[1].values() == {0: 4}
    assert heartbeat.temporary_memory_bytes.values() == {0: 4}
    assert heartbeat.request_bytes.values() == {100: 4}


def test_a_rare_api_is_timed_beside_a_busy_one() -> None:
    meters = Meters()
    for _ in range(10_000):
        meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 7)
    for _ in range(SAMPLES_A_BURST):
        meters.request(FetchRequest(), 12, FetchResponse(), 30)
    assert meters.of("FetchConsumer").times[-1].values() == {30: SAMPLES_A_BURST}


def test_a_fetch_counts_as_fetch_and_as_that_of_a_consumer_or_a_follower() -> None:
    meters = Meters()
    response = FetchResponse()
    meters.request(FetchRequest(), 12, response)
    meters.request(FetchRequest(replica_id=3), 12, response)
    meters.request(FetchRequest(replica_state=ReplicaState(replica_id=3)), 15, response)
    assert meters.of("Fetch").by_version == {12: 2, 15: 1}
    assert meters.of("FetchConsumer").by_version == {12: 1}
    assert meters.of("FetchFollower").by_version == {12: 1, 15: 1}


def test_a_verification_of_transactions_has_its_own_name() -> None:
    meters = Meters()
    verify = AddPartitionsToTxnTransaction(transactional_id="t", verify_only=True)
    meters.request(AddPartitionsToTxnRequest(transactions=[verify]), 4, AddPartitionsToTxnResponse())
    meters.request(AddPartitionsToTxnRequest(), 3, AddPartitionsToTxnResponse())
    assert meters.of("AddPartitionsToTxnVerification").by_version == {4: 1}
    assert meters.of("AddPartitionsToTxn").by_version == {3: 1}


def test_partitions_of_a_produce_are_counted_one_by_one() -> None:
    meters = Meters()
    for codes in ([0], [3], [0, 0, 6]):
        parts = [PartitionProduceResponse(error_code=code) for code in codes]
        topics = [TopicProduceResponse(name="t", partition_responses=parts)]
        meters.request(ProduceRequest(), 11, ProduceResponse(responses=topics))
    meters.request(ProduceRequest(acks=0), 11, None)
    assert meters.of("Produce").errors == {0: 3, 3: 1, 6: 1}
    assert meters.of("Produce").by_version == {11: 4}


def test_codes_of_a_fetch_are_those_of_the_response_and_of_its_partitions() -> None:
    meters = Meters()
    for own, codes in ((0, [0]), (0, [0]), (0, [3]), (74, [0]), (0, [0, 6]), (70, [])):
        partitions = [PartitionData(error_code=code) for code in codes]
        topics = [FetchableTopicResponse(topic="t", partitions=partitions)] if codes else []
        meters.request(FetchRequest(), 12, FetchResponse(error_code=own, responses=topics))
    assert meters.of("Fetch").errors == {0: 8, 3: 1, 6: 1, 70: 1, 74: 1}
    assert meters.of("Fetch").by_version == {12: 6}
    meters.request(FetchRequest(), 12, FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])]))
    assert meters.of("Fetch").errors[0] == 10
    meters.request(FetchRequest(), 12, None)  # the connection is closed instead
    assert meters.of("FetchConsumer").by_version == {12: 8}
    assert meters.of("Fetch").errors[0] == 10


def test_codes_of_a_large_response_are_counted_in_slices() -> None:
    counter = RequestMeters()
    produced = counter.counter(ApiKey.PRODUCE, 11)
    ctx = RequestContext(RequestHeader(ApiKey.PRODUCE, 11, 1), FakeConnection(), 0, 100)
    submitted: list[Steps] = []
    ctx.slices = cast("SlicedWork", SimpleNamespace(submit=submitted.append))
    parts = [PartitionProduceResponse() for _ in range(3 * CODES_A_STEP)]
    produced.count_response(ctx, ProduceResponse(responses=[TopicProduceResponse(partition_responses=parts)]))
    errors = counter.of("Produce").errors
    assert errors == {0: CODES_A_STEP}
    (rest,) = submitted
    next(rest)
    assert errors == {0: 2 * CODES_A_STEP}
    run_through(rest)
    assert errors == {0: 3 * CODES_A_STEP}


def deprecated(meters: Meters, name: str) -> dict[int, dict[tuple[str, str], int]]:
    return {version: dict(counts) for version, counts in meters.meters.of(name).deprecated.items()}


def test_requests_in_deprecated_versions_are_counted_by_client_software() -> None:
    meters = Meters()
    for version in (2, 2, 1, 3):
        meters.request(ProduceRequest(), version, ProduceResponse())
    assert deprecated(meters, "Produce") == {2: {SOFTWARE: 2}, 1: {SOFTWARE: 1}}, "3 is not deprecated"
    for replica_id in (-1, -1, 7):
        meters.request(FetchRequest(replica_id=replica_id), 3, FetchResponse())
    assert deprecated(meters, "Fetch") == {3: {SOFTWARE: 3}}
    assert deprecated(meters, "FetchConsumer") == {3: {SOFTWARE: 2}}
    assert deprecated(meters, "FetchFollower") == {3: {SOFTWARE: 1}}
    assert meters.of("Fetch").by_version == {3: 3}


def test_names_of_client_software_are_bounded() -> None:
    metrics = RequestMetrics()
    for number in range(MAX_DEPRECATED + 5):
        connection = FakeConnection()
        connection.client_software_name = f"x{number}"
        metrics.count_deprecated(0, connection)
        metrics.count_deprecated(0, connection)
    assert len(metrics.deprecated[0]) == MAX_DEPRECATED + 1
    assert metrics.deprecated[0][OTHER_SOFTWARE] == 10
    assert metrics.deprecated[0]["x0", ""] == 2


def test_long_names_of_client_software_are_not_kept() -> None:
    metrics = RequestMetrics()
    connection = FakeConnection()
    for length, found in ((MAX_SOFTWARE_CHARS, {("x" * MAX_SOFTWARE_CHARS, ""): 1}), (MAX_SOFTWARE_CHARS + 1, {})):
        connection.client_software_name = "x" * length
        metrics.count_deprecated(length, connection)
        assert metrics.deprecated[length] == (found or {OTHER_SOFTWARE: 1})


def test_quantiles_forget_and_counts_do_not() -> None:
    meters = Meters()
    meters.request(HeartbeatRequest(), 4, HeartbeatResponse(), 10)
    for _ in range(6):
        meters.meters.adjust(GENERATION_MS)
        meters.request(HeartbeatRequest(), 4, None)
    assert meters.medians("Heartbeat")["total_time"] == 0
    assert meters.of("Heartbeat").times[-1].count == 7


def test_error_codes_have_kafkas_names() -> None:
    assert (error_name(0), error_name(-1), error_name(9999)) == ("NONE", "UNKNOWN_SERVER_ERROR", "9999")
