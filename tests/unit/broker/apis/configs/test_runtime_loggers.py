"""Levels of loggers as a config resource. (What requests are refused is in `apis/configs/test_configs.py`.)"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.broker.apis.configs.runtime_loggers import alter_loggers, logger_configs
from odradek.broker.machine.logger_levels import CLIENT_PREFIX, CLIENTS_MAX, ROOT_LOGGER, LoggerLevels
from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges
from odradek.controller.model.config_codes import AlterOperation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

NAME = "odradek.test.runtime.loggers"
LEVELS = LoggerLevels()


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def levels() -> dict[str, str | None]:
    return {config.name: config.value for config in logger_configs(LEVELS)}


def alter(*changes: ConfigChange, validate_only: bool = False) -> None:
    alter_loggers(LEVELS, ResourceChanges(ResourceType.BROKER_LOGGER, "3", changes), 3, validate_only=validate_only)


@pytest.mark.parametrize("level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_level_is_shown_by_the_name_it_was_set_by(level: str) -> None:
    alter(ConfigChange(NAME, level))
    assert levels()[NAME] == level


def test_level_that_was_taken_back_is_inherited() -> None:
    alter(ConfigChange(NAME, "FATAL"))
    alter(ConfigChange(NAME, None, AlterOperation.DELETE))
    parent = levels()[ROOT_LOGGER]
    assert levels()[NAME] == parent


def test_all_or_none() -> None:
    before = levels()[NAME]
    with pytest.raises(KafkaError) as raised:
        alter(ConfigChange(NAME, "FATAL"), ConfigChange(ROOT_LOGGER, "LOUD"))
    assert raised.value.code == ErrorCode.INVALID_CONFIG
    assert levels()[NAME] == before


@pytest.mark.parametrize("name", ["x", " 3", "0_3", "2147483648"])
def test_the_name_is_a_number(name: str) -> None:
    with pytest.raises(KafkaError, match=f"^Node id must be an integer, but it is: {name}$"):
        alter_loggers(LEVELS, ResourceChanges(ResourceType.BROKER_LOGGER, name, []), 3, validate_only=True)


def test_only_validating_changes_nothing() -> None:
    before = levels()[NAME]
    alter(ConfigChange(NAME, "FATAL"), validate_only=True)
    assert levels()[NAME] == before


def test_there_is_room_for_some_clients() -> None:
    clients = [ConfigChange(f"{CLIENT_PREFIX}client {number}", "DEBUG") for number in range(CLIENTS_MAX)]
    with pytest.raises(KafkaError) as raised:
        alter(*clients, ConfigChange(f"{CLIENT_PREFIX}one more", "DEBUG"))
    assert raised.value.code == ErrorCode.INVALID_CONFIG
    assert CLIENT_PREFIX + "one more" not in levels()
    alter(*clients)
    alter(*(ConfigChange(change.name, None, AlterOperation.DELETE) for change in clients))
    assert not [name for name in levels() if name.startswith(CLIENT_PREFIX)]
