"""A row of the broker's table: a config key with the way it can be changed while the broker runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from odradek.storage.config.config_def import ConfigKey


class UpdateMode(Enum):
    """Where a dynamic value may be set. Kafka prints the same words in its reference."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    """Per broker too, or as a default for all."""


@dataclass(frozen=True, slots=True)
class BrokerConfigKey(ConfigKey):
    """A key of `server.properties`."""

    update_mode: UpdateMode = UpdateMode.READ_ONLY
