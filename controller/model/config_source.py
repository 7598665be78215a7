"""The source of a configuration value, with the numbers of DescribeConfigs.

Kafka: DescribeConfigsResponse.ConfigSource.
"""

from __future__ import annotations

from enum import IntEnum


class ConfigSource(IntEnum):
    """The lowest number has precedence: the topic's value, then the broker's, then the default."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
