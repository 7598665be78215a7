"""The broker's loggers as a config resource: their levels can be read and changed while it runs (KIP-412).

A change lasts until the broker stops. The root logger is called `root`.

Kafka: RuntimeLoggerManager, Log4jController.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.controller.admin.config_admin import AlterOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult

if TYPE_CHECKING:
    from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges

ROOT_LOGGER = "root"
DYNAMIC_BROKER_LOGGER_CONFIG = 6

LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG - 5,
    "WARN": logging.WARNING,
}

logger = logging.getLogger(__name__)


def logger_configs() -> list[DescribeConfigsResourceResult]:
    """Every logger with the level in force."""
    return [
        DescribeConfigsResourceResult(
            name=name, value=_level_name(found), config_source=DYNAMIC_BROKER_LOGGER_CONFIG, documentation=None
        )
        for name, found in sorted(_loggers().items())
    ]


def alter_loggers(resource: ResourceChanges, broker_id: int, *, validate_only: bool) -> None:
    """Change the levels, all or none.

    Raises: KafkaError INVALID_REQUEST for another broker's name or an operation other than set and delete;
    INVALID_CONFIG for an unknown logger or level.
    """
    try:
        named_id = int(resource.resource_name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource.resource_name}"
        ) from None
    if named_id != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {broker_id}, but received {named_id}"
        )
    loggers = _loggers()
    for change in resource.changes:
        _validate(change, loggers)
    if validate_only:
        return
    for change in resource.changes:
        if change.operation == AlterOperation.SET:
            loggers[change.name].setLevel(LEVELS[change.value or ""])
        else:
            loggers[change.name].setLevel(logging.NOTSET)
        logger.warning("Updated the log level of %s to %s", change.name, _level_name(loggers[change.name]))


def _validate(change: ConfigChange, loggers: dict[str, logging.Logger]) -> None:
    if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Operation type {change.operation} is not allowed for the BROKER_LOGGER resource",
        )
    if change.name not in loggers:
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


def _loggers() -> dict[str, logging.Logger]:
    found = {
        name: known for name, known in logging.root.manager.loggerDict.items() if isinstance(known, logging.Logger)
    }
    found[ROOT_LOGGER] = logging.root
    return found


def _level_name(described: logging.Logger) -> str:
    level = described.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if number == level), logging.getLevelName(level))
