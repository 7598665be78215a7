"""The broker's loggers as a config resource: their levels can be read and changed while it runs (KIP-412).

A change lasts until the broker stops. The root logger is called `root`; `machine/logger_levels.py` has the other names.

Kafka: RuntimeLoggerManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.machine.logger_levels import CLIENTS_MAX, LEVELS, ROOT_LOGGER
from odradek.controller.model.config_codes import AlterOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult
from odradek.storage.config.config_def import parse_int32

if TYPE_CHECKING:
    from odradek.broker.machine.logger_levels import LoggerLevels
    from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges

DYNAMIC_BROKER_LOGGER_CONFIG = 6

logger = logging.getLogger(__name__)


def logger_configs(levels: LoggerLevels) -> list[DescribeConfigsResourceResult]:
    """Every logger with the level in force. Its documentation is empty, never null, as in Apache Kafka."""
    return [
        DescribeConfigsResourceResult(name=name, value=level, config_source=DYNAMIC_BROKER_LOGGER_CONFIG)
        for name, level in sorted(levels.levels().items())
    ]


def alter_loggers(levels: LoggerLevels, resource: ResourceChanges, broker_id: int, *, validate_only: bool) -> None:
    """Change the levels, all or none.

    Raises: KafkaError INVALID_REQUEST for another broker's name or an operation other than set and delete;
    INVALID_CONFIG for an unknown logger or level.
    """
    named_id = parse_int32(resource.resource_name)
    if named_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource.resource_name}")
    if named_id != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {broker_id}, but received {named_id}"
        )
    for change in resource.changes:
        _validate(change, levels)
    if not levels.has_room_for(change.name for change in resource.changes):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"There are levels for {CLIENTS_MAX} client ids already")
    if validate_only:
        return
    for change in resource.changes:
        if change.operation == AlterOperation.SET:
            levels.set_level(change.name, change.value or "")
            logger.warning("Updated the log level of %s to %s", change.name, change.value)
        else:
            levels.unset_level(change.name)
            logger.warning("Unset the log level of %s", change.name)


def _validate(change: ConfigChange, levels: LoggerLevels) -> None:
    if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{_operation(change)} is not allowed for the BROKER_LOGGER resource"
        )
    if not levels.exists(change.name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == AlterOperation.SET and change.value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )
    if change.operation == AlterOperation.DELETE and change.name == ROOT_LOGGER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT_LOGGER} logger is not allowed"
        )


def _operation(change: ConfigChange) -> str:
    try:
        return f"{AlterOperation(change.operation).name} operation"
    except ValueError:
        return f"Unknown operation type {change.operation}"
