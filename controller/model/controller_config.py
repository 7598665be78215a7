"""The settings that the controller and the topic APIs read, without the broker's configuration around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """What the controller is configured with. `broker_settings` answers the broker's settings of the moment."""

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
