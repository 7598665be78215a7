"""Names of loggers, and the level at which the requests of a client are logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.broker.machine.log_setup import REQUEST_LOGGER, TRACE, configure_logging
from odradek.broker.machine.logger_levels import CLIENT_PREFIX, KAFKA_LOGGERS, LoggerLevels


@pytest.fixture
def levels() -> Iterator[LoggerLevels]:
    handlers, level = logging.root.handlers[:], logging.root.level
    configure_logging()
    yield LoggerLevels()
    for name in (*KAFKA_LOGGERS.values(), REQUEST_LOGGER):
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize("name", KAFKA_LOGGERS)
def test_names_of_apache_kafka(levels: LoggerLevels, name: str) -> None:
    assert levels.exists(name)
    levels.set_level(name, "TRACE")
    assert levels.levels()[name] == "TRACE"
    assert logging.getLogger(KAFKA_LOGGERS[name]).level == TRACE
    levels.unset_level(name)
    assert logging.getLogger(KAFKA_LOGGERS[name]).level == logging.NOTSET


def test_packages_have_loggers_too(levels: LoggerLevels) -> None:
    logging.getLogger("odradek.some.module.of.a.package")
    assert levels.exists("odradek.some.module")
    assert levels.levels()["odradek.some.module"] == "INFO"


def test_requests_are_not_logged_until_somebody_asks(levels: LoggerLevels) -> None:
    assert levels.levels()[REQUEST_LOGGER] == "WARN"
    levels.set_level("root", "TRACE")
    assert levels.lowest_request_level() == logging.WARNING


def test_one_client(levels: LoggerLevels) -> None:
    calls: list[int] = []
    levels.on_change = lambda: calls.append(levels.lowest_request_level())
    levels.set_level(CLIENT_PREFIX + "orders.v1", "DEBUG")
    assert levels.request_level("orders.v1") == logging.DEBUG
    assert levels.request_level("orders") == levels.request_level("orders.v1.x") == logging.WARNING
    assert levels.levels()[CLIENT_PREFIX + "orders.v1"] == "DEBUG"
    levels.unset_level(CLIENT_PREFIX + "orders.v1")
    assert levels.request_level("orders.v1") == logging.WARNING
    assert calls == [logging.DEBUG, logging.WARNING]


def test_all_clients_but_one(levels: LoggerLevels) -> None:
    levels.set_level(REQUEST_LOGGER, "DEBUG")
    levels.set_level(CLIENT_PREFIX + "noisy", "WARN")
    assert levels.request_level("noisy") == logging.WARNING
    assert levels.request_level("other") == logging.DEBUG
    assert levels.lowest_request_level() == logging.DEBUG


def test_names_that_do_not_exist(levels: LoggerLevels) -> None:
    assert not levels.exists("kafka.no.such.class")
    assert not levels.exists(CLIENT_PREFIX)
