from __future__ import annotations

import pytest

from odradek.broker.fetch.replication_quota import ReplicationQuota, is_throttled
from odradek.storage.config.log_config import LogConfig
from odradek.timer.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


def test_nothing_recorded_is_no_rate(clock: ManualClock) -> None:
    quota = ReplicationQuota(clock, lambda: 0)
    assert quota.bytes_per_second == 0
    assert not quota.is_exceeded


def test_the_first_window_counts_whole(clock: ManualClock) -> None:
    quota = ReplicationQuota(clock, lambda: 100)
    quota.record(100)
    assert quota.bytes_per_second == 100
    assert not quota.is_exceeded, "up to the bound"
    quota.record(1)
    assert quota.is_exceeded
    clock.advance(1_009)
    assert quota.is_exceeded
    clock.advance(1)
    assert not quota.is_exceeded


def test_the_rate_is_over_the_windows_kept(clock: ManualClock) -> None:
    quota = ReplicationQuota(clock, lambda: 10, window_count=3, window_ms=1_000)
    for _ in range(4):
        quota.record(100)
        clock.advance(1_000)
    assert quota.bytes_per_second == 100, "three windows of the last three seconds"
    clock.advance(1_999)
    assert quota.bytes_per_second == pytest.approx(100 / 2.999)
    clock.advance(1)
    assert quota.bytes_per_second == 0, "all too old"


def test_a_window_counts_until_its_last_event_is_too_old(clock: ManualClock) -> None:
    quota = ReplicationQuota(clock, lambda: 10, window_count=2, window_ms=1_000)
    quota.record(60)
    clock.advance(999)
    quota.record(40)
    clock.advance(1_999)
    assert quota.bytes_per_second == pytest.approx(100 / 2.998)
    clock.advance(1)
    assert quota.bytes_per_second == 0


def test_the_bound_may_change(clock: ManualClock) -> None:
    bound = 10
    quota = ReplicationQuota(clock, lambda: bound)
    quota.record(50)
    assert quota.is_exceeded
    bound = 50
    assert not quota.is_exceeded


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ("", False),
        ("*", True),
        ("3:1", True),
        ("0:1, 3:1", True),
        ("3:2,1:3", False),
        ("13:1", False),
        ("03:001", True),
        ("0:0,00:000,3:01", True),
        ("30:1,3:10,03:0", False),
    ],
)
def test_throttled_replicas_are_named_by_partition_and_broker(replicas: str, expected: bool) -> None:
    config = LogConfig.from_props({}, {"leader.replication.throttled.replicas": replicas})
    assert is_throttled(config.leader_replication_throttled_replicas, 3, 1) is expected


def test_replicas_with_the_number_zero_and_the_followers_side() -> None:
    config = LogConfig.from_props({}, {"follower.replication.throttled.replicas": "00:000,10:0"})
    assert is_throttled(config.follower_replication_throttled_replicas, 0, 0)
    assert is_throttled(config.follower_replication_throttled_replicas, 10, 0)
    assert not is_throttled(config.follower_replication_throttled_replicas, 1, 0)
