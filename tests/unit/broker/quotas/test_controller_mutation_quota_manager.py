"""As in Kafka's ControllerMutationQuotaManagerTest: 10 partitions a second, and 100 tokens at most."""

from __future__ import annotations

import pytest

from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.controller_mutation_quota_manager import (
    ControllerMutationQuota,
    ControllerMutationQuotaManager,
)
from odradek.broker.quotas.quota_entity import client_quota_entity
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.in_process_broker import FakeConnection


class Managed:
    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.manager = ControllerMutationQuotaManager(self.clock, SystemTimer(self.clock), window_count=10)

    def quota(self, version: int) -> ControllerMutationQuota:
        ctx = RequestContext(RequestHeader(ApiKey.CREATE_TOPICS, version, 1, "c"), FakeConnection(), 0, 100)
        return self.manager.new_quota_for(ctx, strict_since_version=6)


@pytest.fixture
def managed() -> Managed:
    managed = Managed()
    managed.manager.update_quota(client_quota_entity(None, "c"), 10)
    return managed


STRICT, PERMISSIVE = 6, 5


def test_a_strict_quota_refuses_when_it_is_exhausted(managed: Managed) -> None:
    quota = managed.quota(STRICT)
    quota.record(90)
    assert quota.throttle_time_ms == 0
    quota.record(20)
    assert quota.throttle_time_ms == 0, "a burst may exceed the tokens once"
    with pytest.raises(KafkaError) as refused:
        quota.record(1)
    assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.value.specific_message is None
    assert quota.throttle_time_ms == 1_000, "10 tokens are missing"
    managed.clock.advance(600)
    assert quota.throttle_time_ms == 400
    managed.clock.advance(400)
    managed.quota(STRICT).record(1)


def test_what_is_refused_does_not_count(managed: Managed) -> None:
    managed.quota(STRICT).record(110)
    for _ in range(3):
        with pytest.raises(KafkaError):
            managed.quota(STRICT).record(1_000)
    managed.clock.advance(1_000)
    managed.quota(STRICT).record(1)


def test_a_permissive_quota_accepts_and_throttles(managed: Managed) -> None:
    quota = managed.quota(PERMISSIVE)
    quota.record(90)
    assert quota.throttle_time_ms == 0
    quota.record(20)
    assert quota.throttle_time_ms == 1_000
    quota.record(5)
    assert quota.throttle_time_ms == 1_500
    managed.clock.advance(2_000)
    assert quota.throttle_time_ms == 0


def test_without_a_quota_everything_is_accepted() -> None:
    quota = Managed().quota(STRICT)
    quota.record(10**9)
    assert quota.throttle_time_ms == 0


def test_a_client_without_a_limit_is_measured_and_accepted(managed: Managed) -> None:
    managed.manager.update_quota(client_quota_entity(None, "c"), None)
    quota = managed.quota(STRICT)
    quota.record(10**9)
    quota.record(1)
    assert quota.throttle_time_ms == 0
    (sensors,) = managed.manager.sensors
    assert sensors.rate.measure(managed.clock.monotonic_ms()) > 0


def test_a_lower_quota_holds_at_once(managed: Managed) -> None:
    managed.quota(STRICT).record(50)
    managed.manager.update_quota(client_quota_entity(None, "c"), 1)
    managed.quota(STRICT).record(11)
    with pytest.raises(KafkaError):
        managed.quota(STRICT).record(1)


@pytest.mark.parametrize("version", [STRICT, PERMISSIVE])
def test_what_a_client_does_without_a_quota_pays_its_debt(managed: Managed, version: int) -> None:
    """A request while there is no quota fills the bucket, as in Kafka's TokenBucket with a bound of Long.MAX_VALUE."""
    managed.quota(STRICT).record(200)
    managed.manager.update_quota(client_quota_entity(None, "c"), None)
    managed.clock.advance(1)
    unlimited = managed.quota(version)
    unlimited.record(10**6)
    assert unlimited.throttle_time_ms == 0
    managed.manager.update_quota(client_quota_entity(None, "c"), 10)
    again = managed.quota(STRICT)
    again.record(100)
    again.record(1)
    with pytest.raises(KafkaError):
        again.record(1)
    assert again.throttle_time_ms == 100, "the bucket was full, with 100 tokens"


def test_a_client_that_does_nothing_without_a_quota_keeps_its_debt(managed: Managed) -> None:
    """It is paid at the rate of the quota that is set again."""
    managed.quota(STRICT).record(200)
    managed.manager.update_quota(client_quota_entity(None, "c"), None)
    managed.clock.advance(1_000)
    managed.manager.update_quota(client_quota_entity(None, "c"), 20)
    quota = managed.quota(STRICT)
    with pytest.raises(KafkaError):
        quota.record(1)
    assert quota.throttle_time_ms == 4_000, "100 tokens were missing, and 20 have come"
