"""When requests are observed for the request log."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.log_setup import REQUEST_LOGGER
from odradek.broker.machine.logger_levels import CLIENT_PREFIX, LoggerLevels
from odradek.broker.network.requests.request import RequestObserver
from odradek.broker.network.requests.request_log_switch import RequestLogSwitch, secrets_of
from odradek.timer.clock import ManualClock


class Dispatches:
    def __init__(self) -> None:
        self.observers: list[RequestObserver] = []

    def observe(self, observer: RequestObserver) -> None:
        self.observers.append(observer)

    def stop_observing(self, observer: RequestObserver) -> None:
        self.observers.remove(observer)


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    logging.getLogger(REQUEST_LOGGER).setLevel(logging.WARNING)
    yield
    logging.getLogger(REQUEST_LOGGER).setLevel(logging.WARNING)


def test_observes_while_a_level_asks_for_it() -> None:
    observed, levels = Dispatches(), LoggerLevels()
    RequestLogSwitch(observed, levels, ManualClock(0), lambda name: False)
    assert observed.observers == []
    levels.set_level(CLIENT_PREFIX + "one", "DEBUG")
    levels.set_level(REQUEST_LOGGER, "DEBUG")
    assert len(observed.observers) == 1
    levels.set_level(REQUEST_LOGGER, "WARN")
    assert len(observed.observers) == 1
    levels.unset_level(CLIENT_PREFIX + "one")
    assert observed.observers == []


def test_level_at_the_start_holds() -> None:
    logging.getLogger(REQUEST_LOGGER).setLevel(logging.DEBUG)
    observed = Dispatches()
    RequestLogSwitch(observed, LoggerLevels(), ManualClock(0), lambda name: False)
    assert len(observed.observers) == 1


def test_nothing_is_imported_while_it_is_off() -> None:
    code = (
        "import sys, odradek.broker.server, odradek.broker.network.requests.request_log_switch\n"
        "log, json = 'odradek.broker.network.requests.request_log', 'odradek.protocol.loggable_json'\n"
        "print(log in sys.modules, json in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]


def test_configs_of_unknown_type_are_secret() -> None:
    is_secret = secrets_of(BrokerConfig({}))
    names = ("ssl.key.password", "listener.name.x.ssl.key.password", "no.such.config", "log.dirs", "cleanup.policy")
    assert [is_secret(name) for name in names] == [True, True, True, False, False]
