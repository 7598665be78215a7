"""Settings of the group coordinator.

Kafka: GroupConfig, OffsetConfig.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion


class GroupConfig(NamedTuple):
    """Defaults are Kafka's. Names are those of server.properties, with underscores."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    metadata_version: MetadataVersion = LATEST_PRODUCTION
    """Decides the versions of the records that are written."""


NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""The session timeout of a member whose first join is parked: it sends no heartbeat, and its client may be gone.

Kafka: GroupCoordinator.NewMemberJoinTimeoutMs.
"""
