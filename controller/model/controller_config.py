"""The settings that the controller and the topic APIs use, without the rest of the broker's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion


class ControllerConfig(NamedTuple):
    """Settings of the controller. `broker_settings` returns the current settings of the broker."""

    broker_id: int
    inter_broker_listener_name: str = "PLAINTEXT"
    delete_topic_enable: bool = True
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: int = 300
    num_partitions: int = 1
    default_replication_factor: int = 1
    metadata_version: MetadataVersion = LATEST_PRODUCTION
    broker_settings: Callable[[], Mapping[str, str]] = dict
