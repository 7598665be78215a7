"""Refuses control requests that were meant for an earlier registration of this broker, by their broker epoch.

Kafka: ZkSupport.isBrokerEpochStale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.model.broker_info import UNKNOWN_BROKER_EPOCH

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services


def is_stale(broker: Services, broker_epoch: int) -> bool:
    """A larger epoch is not stale: the controller may see a new registration before this broker does."""
    return broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < broker.controller.broker_epoch
