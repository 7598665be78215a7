"""Levels of loggers that are changed while the broker runs, on Odradek and on Apache Kafka."""

from __future__ import annotations

from typing import cast

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.describe_configs import DescribeConfigsResponse
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.support.broker import Broker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

BROKER_LOGGER, DYNAMIC_BROKER_LOGGER_CONFIG = 8, 6
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_CONFIG, INVALID_REQUEST = 40, 42
NAME = "kafka.request.logger"


def alter(
    broker: Broker,
    name: str,
    operation: int,
    value: str | None = None,
    *,
    broker_id: str = "0",
    validate_only: bool = False,
) -> tuple[int, str | None]:
    configs = [{"name": name, "config_operation": operation, "value": value}]
    resource = {"resource_type": BROKER_LOGGER, "resource_name": broker_id, "configs": configs}
    request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=validate_only)
    with RawClient(broker.host, broker.port) as client:
        answer = cast("IncrementalAlterConfigsResponse", client.call(request, 1)).responses[0]
    return answer.error_code, answer.error_message


def level(broker: Broker, name: str) -> str | None:
    resource = {"resource_type": BROKER_LOGGER, "resource_name": "0", "configuration_keys": [name]}
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.DESCRIBE_CONFIGS, resources=[resource]), 4)
    (result,) = cast("DescribeConfigsResponse", answer).results
    (config,) = result.configs
    assert (config.config_source, config.read_only, config.is_sensitive) == (DYNAMIC_BROKER_LOGGER_CONFIG, False, False)
    return config.value


@pytest.mark.oracle
def test_levels(broker: Broker) -> None:
    before = level(broker, "root")
    for value in ("ERROR", "FATAL", "WARN"):
        assert alter(broker, NAME, SET, value) == (0, None)
        assert level(broker, NAME) == value
    assert alter(broker, NAME, SET, "FATAL", validate_only=True) == (0, None)
    assert level(broker, NAME) == "WARN"
    assert alter(broker, "root", SET, "ERROR") == (0, None)
    assert level(broker, "root") == "ERROR"
    assert alter(broker, NAME, DELETE) == (0, None)
    assert level(broker, NAME) == "ERROR", "inherited"
    assert alter(broker, NAME, SET, "WARN") == (0, None)
    assert alter(broker, "root", SET, before) == (0, None)


@pytest.mark.oracle
def test_refusals(broker: Broker) -> None:
    said = [
        alter(broker, NAME, SET, "LOUD"),
        alter(broker, NAME, SET, "debug"),
        alter(broker, "no.such.logger", SET, "INFO"),
        alter(broker, "no.such.logger", DELETE),
        alter(broker, "root", DELETE),
        alter(broker, NAME, APPEND, "INFO"),
        alter(broker, NAME, SUBTRACT, "INFO"),
        alter(broker, NAME, SET, "INFO", broker_id="x"),
    ]
    levels = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
    assert said == [
        (INVALID_CONFIG, f"Cannot set the log level of {NAME} to LOUD as it is not a supported log level. {levels}"),
        (INVALID_CONFIG, f"Cannot set the log level of {NAME} to debug as it is not a supported log level. {levels}"),
        (INVALID_CONFIG, "Logger no.such.logger does not exist!"),
        (INVALID_CONFIG, "Logger no.such.logger does not exist!"),
        (INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        (INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        (INVALID_REQUEST, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource"),
        (INVALID_REQUEST, "Node id must be an integer, but it is: x"),
    ]
    assert alter(broker, NAME, SET, "INFO", broker_id="7")[0] == INVALID_REQUEST
