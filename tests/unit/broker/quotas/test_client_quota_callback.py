"""A class of an operator decides: tags, limits, and what makes the limits new."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.quotas.client_quota_callback import ClientQuotaCallback, Cluster
from odradek.broker.quotas.quota_entity import ClientQuotaEntity, ClientQuotaType, client_quota_entity
from odradek.broker.quotas.quota_managers import QuotaManagers
from odradek.broker.setup.cluster_links import ClusterLinks
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.in_process_broker import in_process_broker


class Recorded(ClientQuotaCallback):
    """One limit for all clients of a user."""

    made: ClassVar[list[Recorded]] = []

    def __init__(self) -> None:
        self.limit: float | None = 100.0
        self.calls: list[object] = []
        self.must_reset = self.breaks = False
        Recorded.made.append(self)

    def configure(self, configs: Mapping[str, str]) -> None:
        self.calls.append(("configure", configs["my.setting"]))

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: str, client_id: str) -> Mapping[str, str]:
        if self.breaks:
            raise ValueError("broken")
        return {"who": principal}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        self.calls.append((quota_type, dict(metric_tags)))
        return self.limit

    def update_quota(self, quota_type: ClientQuotaType, quota_entity: ClientQuotaEntity, new_value: float) -> None:
        self.calls.append(("update", quota_type, quota_entity, new_value))

    def remove_quota(self, quota_type: ClientQuotaType, quota_entity: ClientQuotaEntity) -> None:
        self.calls.append(("remove", quota_type, quota_entity))

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return self.must_reset

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        if self.breaks:
            raise ValueError("broken")
        self.calls.append(("cluster", cluster.cluster_id, sorted(cluster.topics), sorted(cluster.broker_ids)))
        return self.must_reset

    def close(self) -> None:
        self.calls.append("close")


SETTINGS = {"client.quota.callback.class": f"{__name__}:Recorded", "my.setting": "x", "log.dirs": "/tmp/unused"}


@pytest.fixture
def managers() -> QuotaManagers:
    clock = ManualClock(1_000)
    return QuotaManagers(BrokerConfig(SETTINGS), clock, SystemTimer(clock))


@pytest.fixture
def callback(managers: QuotaManagers) -> Recorded:
    return Recorded.made[-1]


def window_bytes(managers: QuotaManagers, user: str = "u") -> float | None:
    return managers.produce.max_value_in_quota_window(f"User:{user}", "c")


def test_it_decides_from_the_start(managers: QuotaManagers, callback: Recorded) -> None:
    assert callback.calls == [("configure", "x")]
    assert window_bytes(managers) == 1_000
    assert callback.calls[1:] == [(ClientQuotaType.PRODUCE, {"who": "User:u"})]
    assert window_bytes(managers) == 1_000
    assert len(callback.calls) == 2, "the limit is asked for once"
    assert managers.produce.record_and_get_throttle_time_ms("User:u", "another", 2_000) > 0
    assert managers.produce.record_and_get_throttle_time_ms("User:v", "another", 1) == 0


def test_requests_are_observed_at_once(managers: QuotaManagers, callback: Recorded) -> None:
    enabled: list[bool] = []
    managers.when_enabled(lambda: enabled.append(True))
    assert enabled == [True]


def test_quotas_in_the_metadata_are_passed_on(managers: QuotaManagers, callback: Recorded) -> None:
    assert window_bytes(managers) == 1_000
    callback.limit = 5
    managers.config_changed("users/u", {"producer_byte_rate": "7"})
    entity = client_quota_entity("u", None)
    assert ("update", ClientQuotaType.PRODUCE, entity, 7.0) in callback.calls
    assert ("remove", ClientQuotaType.FETCH, entity) in callback.calls
    assert window_bytes(managers) == 50, "asked again after the change"


def test_limits_are_asked_again_when_the_callback_says_so(managers: QuotaManagers, callback: Recorded) -> None:
    assert window_bytes(managers) == 1_000
    callback.limit = None
    assert window_bytes(managers) == 1_000
    callback.must_reset = True
    assert window_bytes(managers) is None


def test_limits_may_depend_on_the_metadata(managers: QuotaManagers, callback: Recorded) -> None:
    assert window_bytes(managers) == 1_000
    callback.limit = 1
    managers.metadata_changed("id", MetadataCache(1))
    assert callback.calls[-1] == ("cluster", "id", [], [])
    assert window_bytes(managers) == 1_000
    callback.must_reset = True
    managers.metadata_changed("id", MetadataCache(1))
    callback.must_reset = False
    assert window_bytes(managers) == 10


def test_a_fault_is_logged_and_the_request_has_no_limit_of_its_own(
    managers: QuotaManagers, callback: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    callback.breaks = True
    callback.limit = None
    with caplog.at_level(logging.WARNING):
        assert managers.produce.record_and_get_throttle_time_ms("User:u", "c", 10**9) == 0
        managers.metadata_changed("id", MetadataCache(1))
    assert "quota_metric_tags of client.quota.callback.class failed: ValueError('broken')" in caplog.text
    assert "update_cluster_metadata of client.quota.callback.class failed" in caplog.text


def test_a_limit_that_is_no_number_is_no_limit(
    managers: QuotaManagers, callback: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    callback.limit = "much"  # type: ignore[assignment]
    with caplog.at_level(logging.WARNING):
        assert managers.produce.record_and_get_throttle_time_ms("User:u", "c", 10**9) == 0
    assert "quota_limit of client.quota.callback.class failed: ValueError" in caplog.text


def test_a_class_that_lacks_a_method_stops_the_start() -> None:
    clock = ManualClock()
    settings = {**SETTINGS, "client.quota.callback.class": "collections.OrderedDict"}
    with pytest.raises(StartupError, match="quota_metric_tags"):
        QuotaManagers(BrokerConfig(settings), clock, SystemTimer(clock))


def test_a_whole_broker_tells_it_of_topics_and_closes_it(tmp_path: Path) -> None:
    settings = {key: value for key, value in SETTINGS.items() if key != "log.dirs"}
    with in_process_broker(tmp_path, settings) as broker:
        callback = Recorded.made[-1]
        broker.create_topic("t", 2)
        assert ("cluster", broker.services.cluster_id, ["t"], [0]) in callback.calls
        cluster = Cluster("id", broker.services.metadata_cache)
        assert cluster.leaders("t") == {0: 0, 1: 0}
        assert cluster.leaders("unknown") == {}
    assert callback.calls[-1] == "close"


def test_the_callback_is_closed_when_no_request_can_come_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {key: value for key, value in SETTINGS.items() if key != "log.dirs"}
    closed_before: list[bool] = []
    close = ClusterLinks.close
    monkeypatch.setattr(
        ClusterLinks, "close", lambda links: (closed_before.append("close" in Recorded.made[-1].calls), close(links))
    )
    with in_process_broker(tmp_path, settings):
        pass
    assert closed_before == [False]
    assert Recorded.made[-1].calls[-1] == "close"
