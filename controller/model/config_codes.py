"""Numbers of the requests about configs: types of resources, operations, sources of values.

Kafka: ConfigResource.Type, AlterConfigOp.OpType, DescribeConfigsResponse.ConfigSource.
"""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """The types of config resources."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does with a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(IntEnum):
    """The source of a value. The lowest number has precedence: the topic, then the broker, then the default."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
