"""Configs in the metadata become quotas."""

from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.quotas.quota_managers import QuotaManagers
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


def managers(**settings: str) -> QuotaManagers:
    clock = ManualClock(1_000)
    config = BrokerConfig(
        {"log.dirs": "/tmp/unused", **{key.replace("_", "."): text for key, text in settings.items()}}
    )
    return QuotaManagers(config, clock, SystemTimer(clock))


def window_bytes(quotas: QuotaManagers, user: str, client_id: str) -> tuple[float | None, float | None]:
    return (
        quotas.produce.max_value_in_quota_window(f"User:{user}", client_id),
        quotas.fetch.max_value_in_quota_window(f"User:{user}", client_id),
    )


def test_a_node_of_a_client_id() -> None:
    quotas = managers()
    quotas.config_changed("clients/a%40b", {"producer_byte_rate": "100", "consumer_byte_rate": "200"})
    assert window_bytes(quotas, "ANONYMOUS", "a@b") == (1_000, 2_000)
    quotas.config_changed("clients/a%40b", {"consumer_byte_rate": "300"})
    assert window_bytes(quotas, "ANONYMOUS", "a@b") == (None, 3_000)


def test_nodes_of_users() -> None:
    quotas = managers()
    quotas.config_changed("users/<default>", {"producer_byte_rate": "100"})
    quotas.config_changed("users/alice/clients/app", {"producer_byte_rate": "200"})
    assert window_bytes(quotas, "bob", "app") == (1_000, None)
    assert window_bytes(quotas, "alice", "app") == (2_000, None)


def test_a_node_without_quotas_enables_them_as_in_kafka() -> None:
    quotas = managers()
    assert not quotas.produce.is_enabled
    quotas.config_changed("users/alice", {"SCRAM-SHA-256": "salt"})
    assert quotas.produce.is_enabled
    assert quotas.fetch.is_enabled


@pytest.mark.parametrize("path", ["alice/clients", "a/b/c/d"])
def test_another_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="Invalid quota entity path"):
        managers().config_changed(f"users/{path}", {})


def test_the_windows_come_from_the_configuration() -> None:
    quotas = managers(quota_window_num="4", quota_window_size_seconds="2")
    quotas.config_changed("clients/c", {"producer_byte_rate": "100"})
    assert window_bytes(quotas, "u", "c") == (600, None)
