"""Quotas that no operator means, and AlterClientQuotas takes, as Apache Kafka does.

The throttle times are those of Java's arithmetic for a rate of 200 in 10 seconds; at 0 or less nobody is throttled.
"""

from __future__ import annotations

import math

import pytest

from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.client_quota_manager import ClientQuotaManager
from odradek.broker.quotas.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.broker.quotas.quota_entity import ClientQuotaType, client_quota_entity
from odradek.broker.quotas.request_quota_manager import ClientRequestQuotaManager
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.in_process_broker import FakeConnection

CLIENT = client_quota_entity(None, "c")

TIMES = [
    (math.nan, 0, 0),
    (math.inf, 0, 0),
    (-math.inf, 0, 0),
    (-1.0, -2_010_000, -2_010_000),
    (-0.0, 0, 0),
    (0.0, -1, 1000),
    (5e-324, -1, 1000),
    (1e-9, 1_233_967_344, 1000),
    (1.0, 1_990_000, 1000),
    (1e308, 0, 0),
    (-1e-9, -1_233_987_344, -1_233_987_344),
]
"""Quota, throttle time for bytes, and for processor time, which is one window at most."""


@pytest.mark.parametrize(("bound", "of_bytes", "of_time"), TIMES)
def test_throttle_times_are_those_of_java(bound: float, of_bytes: int, of_time: int) -> None:
    clock = ManualClock(1_000_000)
    timer = SystemTimer(clock)
    produce = ClientQuotaManager(ClientQuotaType.PRODUCE, clock, timer)
    request = ClientRequestQuotaManager(clock, timer)
    for manager, throttle_ms in ((produce, of_bytes), (request, of_time)):
        manager.update_quota(CLIENT, bound)
        assert manager.record_and_get_throttle_time_ms("User:u", "c", 2000) == throttle_ms


@pytest.mark.parametrize(
    ("bound", "throttle_ms"),
    [
        (math.nan, None),
        (math.inf, None),
        (-math.inf, 0),
        (-1.0, 0),
        (-0.0, 0),
        (0.0, 0),
        (1e-9, 276_437_232),
        (1.0, 90_000),
        (1e308, None),
        (-1e-9, 0),
    ],
)
def test_changes_of_topics_are_refused_as_in_java(bound: float, throttle_ms: int | None) -> None:
    """`throttle_ms`: that of the refusal of a second topic; None if it is not refused."""
    clock = ManualClock(1_000_000)
    manager = ControllerMutationQuotaManager(clock, SystemTimer(clock), window_count=10)
    manager.update_quota(CLIENT, bound)
    ctx = RequestContext(RequestHeader(ApiKey.CREATE_TOPICS, 6, 1, "c"), FakeConnection(), 0, 100)
    if throttle_ms is None:
        for _ in range(10):
            manager.new_quota_for(ctx, strict_since_version=6).record(100)
        return
    quota = manager.new_quota_for(ctx, strict_since_version=6)
    if bound >= 0:  # a bucket that begins with no less than nothing
        quota.record(100)
    with pytest.raises(KafkaError) as refusal:
        quota.record(100)
    assert refusal.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert quota.throttle_time_ms == throttle_ms


def test_tokens_that_come_back_within_half_a_millisecond_are_missing_all_the_same() -> None:
    clock = ManualClock(1_000_000)
    manager = ControllerMutationQuotaManager(clock, SystemTimer(clock), window_count=1)
    manager.update_quota(CLIENT, 10_000.0)
    ctx = RequestContext(RequestHeader(ApiKey.CREATE_TOPICS, 6, 1, "c"), FakeConnection(), 0, 100)
    quota = manager.new_quota_for(ctx, strict_since_version=6)
    quota.record(10_004)
    with pytest.raises(KafkaError):
        quota.record(1)
    assert quota.throttle_time_ms == 0
