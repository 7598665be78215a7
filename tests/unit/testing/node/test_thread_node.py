from __future__ import annotations

import gc
import logging
import signal
import threading

import pytest

from odradek.testing.node.ports import BrokerStopped
from odradek.testing.node.settings import broker_settings
from odradek.testing.node.thread_node import ThreadNode
from odradek.testing.observations.warning_lines import WarningLines
from tests.support.testing import asking  # noqa: F401 - registers the questions


def state_of_process() -> tuple[object, ...]:
    return (
        gc.get_threshold(),
        gc.isenabled(),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)],
        logging.getLogger().level,
        list(logging.getLogger().handlers),
        logging.getLogger("odradek").level,
        [each for each in logging.getLogger("odradek").handlers if not isinstance(each, WarningLines)],
        {thread.name for thread in threading.enumerate()},
    )


def test_the_process_is_as_before() -> None:
    before = state_of_process()
    node = ThreadNode(broker_settings({}, {}))
    assert node.start().result(10).addresses
    running = state_of_process()
    assert running[:-1] == before[:-1]
    node.stop().result(10)
    node._thread.join(10)
    assert state_of_process() == before


def test_nothing_is_answered_after_the_stop() -> None:
    node = ThreadNode(broker_settings({}, {}))
    node.start().result(10)
    node.stop().result(10)
    node.stop().result(10)
    with pytest.raises(BrokerStopped):
        node.submit("process_id", {}).result(10)
