from __future__ import annotations

from odradek.coordinator.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupConfig


def test_defaults_are_kafkas() -> None:
    config = GroupConfig()
    assert (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms) == (6_000, 1_800_000)
    assert (config.group_initial_rebalance_delay_ms, config.group_max_size) == (3_000, 2**31 - 1)
    assert config.offset_metadata_max_bytes == 4096
    assert config.offsets_retention_ms == 10_080 * 60 * 1000
    assert config.offsets_retention_check_interval_ms == 600_000
    assert NEW_MEMBER_JOIN_TIMEOUT_MS == 300_000
