"""Where the value of a configuration comes from, as DescribeConfigs numbers it.

Kafka: DescribeConfigsResponse.ConfigSource.
"""

from __future__ import annotations

from enum import IntEnum


class ConfigSource(IntEnum):
    """The least number wins: a topic's own value before the broker's, and that before the default."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
