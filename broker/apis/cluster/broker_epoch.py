"""Control requests name the broker epoch they are meant for: one for an earlier life of this broker is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.model.broker_info import UNKNOWN_BROKER_EPOCH

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services


def is_stale(broker: Services, broker_epoch: int) -> bool:
    """A larger epoch is accepted: the controller may learn of our registration before we do."""
    return broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < broker.controller.broker_epoch
