"""A row of the broker's configuration table: a config key with its update mode."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from odradek.storage.config.config_def import ConfigKey


class UpdateMode(Enum):
    """Whether a dynamic value may be set, and where. Kafka's reference has the same words."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    """For one broker, or as a default for all."""


@dataclass(frozen=True, slots=True)
class BrokerConfigKey(ConfigKey):
    """A key of `server.properties`."""

    update_mode: UpdateMode = UpdateMode.READ_ONLY
