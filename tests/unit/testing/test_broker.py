from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.controller.tree.metadata_tree import NoNode
from odradek.testing import Broker
from odradek.testing.node.ports import BrokerStopped
from tests.support.testing import asking  # noqa: F401 - registers the questions


def test_it_serves_in_a_with_block_and_leaves_nothing() -> None:
    with Broker() as broker:
        directory = broker.ask("log_directory")
        assert isinstance(directory, str)
        assert os.path.isdir(directory)
        host, _, port = broker.bootstrap_servers.partition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert broker.ask("process_id") == os.getpid()
    assert not os.path.exists(os.path.dirname(directory))


def test_it_can_be_started_again_as_a_new_broker() -> None:
    broker = Broker().start()
    broker.ask("make_node_of_test")
    broker.stop()
    with pytest.raises(BrokerStopped):
        _ = broker.bootstrap_servers
    with broker:
        assert broker.ask("has_node_of_test") is False


def test_a_second_start_is_refused_and_a_second_stop_does_nothing() -> None:
    broker = Broker().start()
    with pytest.raises(RuntimeError, match="started already"):
        broker.start()
    broker.stop()
    broker.stop()
    with pytest.raises(BrokerStopped):
        broker.ask("process_id")


def test_reset_takes_everything_and_keeps_the_port() -> None:
    with Broker() as broker:
        before = broker.bootstrap_servers
        directory = broker.ask("log_directory")
        broker.ask("make_node_of_test")
        assert broker.ask("has_node_of_test") is True
        broker.reset()
        assert broker.ask("has_node_of_test") is False
        assert broker.bootstrap_servers == before
        assert isinstance(directory, str)
        assert not os.path.exists(directory)


def test_all_listeners_are_named_by_their_addresses() -> None:
    with Broker(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    ) as broker:
        assert list(broker.addresses) == ["INSIDE", "OUTSIDE"]
        assert broker.bootstrap_servers == broker.addresses["INSIDE"] != broker.addresses["OUTSIDE"]


def test_a_refused_start_raises_the_line_for_operators() -> None:
    broker = Broker(num_partitions=0)
    with pytest.raises(StartupError, match=r"num\.partitions"):
        broker.start()
    with Broker() as other, pytest.raises(StartupError, match="Address already in use"):
        Broker(listeners=f"PLAINTEXT://{other.bootstrap_servers}").start()


def test_an_error_of_a_question_is_raised_here() -> None:
    with Broker() as broker:
        with pytest.raises(NoNode, match="not there"):
            broker.ask("fail_in_broker", text="not there")
        with pytest.raises(KeyError, match="is not a question"):
            broker.ask("unknown")


def test_a_broker_that_cannot_go_on_is_stopped_and_the_test_gets_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:
        waiting = broker.ask_soon("never_answered")
        broker.ask("lose_the_disk")
        with pytest.raises((BrokerStopped, OSError)):
            waiting.result(10)
        for _ in range(2):
            with pytest.raises(BrokerStopped, match="has failed: the disk is gone"):
                broker.ask("process_id")
    assert "The broker cannot go on: the disk is gone" in caplog.text


def test_one_of_two_starts_at_the_same_time_is_refused() -> None:
    broker = Broker()
    threads = set(threading.enumerate())
    together = threading.Barrier(8)

    def start(_: int) -> bool:
        together.wait(10)
        try:
            broker.start()
        except RuntimeError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, range(8)))
    broker.stop()
    assert sum(started) == 1
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive()


IMPORTED = "from odradek.testing import Broker; import sys; print(*sorted(sys.modules))"


def test_importing_it_imports_neither_a_broker_nor_its_views() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True, timeout=60)
    found = set(done.stdout.split())
    assert "odradek.testing.broker" in found
    assert not {"asyncio", "odradek.broker", "odradek.coordinator", "odradek.protocol", "odradek.storage"} & found
    assert not {"concurrent.futures", "dataclasses", "datetime", "inspect", "logging"} & found
