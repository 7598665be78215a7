"""The settings of the controller, from the configuration of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.model.controller_config import ControllerConfig

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig


def controller_config_of(config: BrokerConfig) -> ControllerConfig:
    """The broker's id must be assigned by then."""
    return ControllerConfig(
        broker_id=config.broker_id,
        inter_broker_listener_name=config.listeners.inter_broker.name,
        delete_topic_enable=config.delete_topic_enable,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
        leader_imbalance_check_interval_seconds=config.leader_imbalance_check_interval_seconds,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        metadata_version=config.metadata_version,
        broker_settings=lambda: config.settings,
    )
