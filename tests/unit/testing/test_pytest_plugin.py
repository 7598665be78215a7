"""The plugin in runs of pytest as users have them: in processes of their own, without the set-up of this suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PLUGIN = "odradek.testing.pytest_plugin"


def run_pytest(
    directory: Path, *arguments: str, plugins: tuple[str, ...] = (), timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    options = [option for plugin in (PLUGIN, *plugins) for option in ("-p", plugin)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *options, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def suite(directory: Path, text: str, ini: str = "") -> Path:
    (directory / "test_suite.py").write_text(text)
    (directory / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers\n{ini}")
    return directory


FIXTURES = """
import asyncio
import threading

import pytest
from odradek.testing import AsyncBroker, Broker
from tests.support.testing import asking

ports = []


def test_first(odradek):
    assert isinstance(odradek, Broker)
    ports.append(odradek.bootstrap_servers)
    odradek.ask("make_node_of_test")


def test_the_broker_of_the_session_is_reset(odradek):
    assert odradek.ask("has_node_of_test") is False
    ports.append(odradek.bootstrap_servers)
    odradek.stop()


def test_a_broker_that_a_test_has_stopped_is_started_again(odradek):
    assert odradek.ask("has_node_of_test") is False
    ports.append(odradek.bootstrap_servers)


@pytest.mark.odradek(config={"num.partitions": 3}, log_retention_ms=5)
def test_a_marker_gives_a_broker_of_the_tests_own(odradek):
    assert odradek.ask("config_of_broker", name="num.partitions") == "3"
    assert odradek.ask("config_of_broker", name="log.retention.ms") == "5"
    assert odradek.ask("config_of_broker", name="compression.type") == "lz4"
    assert odradek.bootstrap_servers not in ports


def test_the_sessions_broker_is_as_before(odradek):
    assert ports[0] == ports[1]
    assert odradek.bootstrap_servers == ports[2]
    assert odradek.ask("config_of_broker", name="num.partitions") == "1"
    assert odradek.ask("config_of_broker", name="compression.type") == "lz4"


def test_brokers_of_ones_own(odradek_broker, odradek):
    first, second = odradek_broker(), odradek_broker({"num.partitions": 4}, own_process=False)
    assert second.ask("config_of_broker", name="num.partitions") == "4"
    assert len({first.bootstrap_servers, second.bootstrap_servers, odradek.bootstrap_servers}) == 3
    first.stop()


def test_for_coroutines(odradek, odradek_async, odradek_async_broker):
    async def test():
        assert isinstance(odradek_async, AsyncBroker)
        assert odradek_async.bootstrap_servers == odradek.bootstrap_servers
        await odradek_async.ask("make_node_of_test")
        other = await odradek_async_broker(num_partitions=5)
        assert await other.ask("config_of_broker", name="num.partitions") == "5"
        assert await other.ask("has_node_of_test") is False

    asyncio.run(test())
    assert odradek.ask("has_node_of_test") is True


@pytest.mark.odradek(num_partitions=3)
def test_a_restart_by_coroutines_keeps_the_configs(odradek, odradek_async):
    async def test():
        await odradek_async.stop()
        await odradek_async.start()
        assert await odradek_async.ask("config_of_broker", name="num.partitions") == "3"
        assert await odradek_async.ask("config_of_broker", name="compression.type") == "lz4"

    asyncio.run(test())
    assert odradek_async.bootstrap_servers == odradek.bootstrap_servers


def test_only_the_sessions_broker_is_left():
    assert [thread.name for thread in threading.enumerate()].count("odradek-broker") == 1
"""


def test_fixtures(tmp_path: Path) -> None:
    done = run_pytest(suite(tmp_path, FIXTURES, "odradek_config =\n  compression.type=lz4\n"), "-q")
    assert "9 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


CLUSTER = """
def test_a_cluster(odradek_cluster):
    cluster = odradek_cluster(2, own_process=False)
    assert cluster.controller in (0, 1)
    assert cluster.brokers[1].ask("config_of_broker", name="compression.type") == "lz4"
    raise AssertionError
"""


def test_a_cluster_of_the_tests_own(tmp_path: Path) -> None:
    text = "from tests.support.testing import asking\n" + CLUSTER
    done = run_pytest(suite(tmp_path, text, "odradek_config =\n  compression.type=lz4\n"), "-q")
    assert "raise AssertionError\nE" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("- odradek 127.0.0.1:") == 2, done.stdout


FAILURES = """
import pytest


def test_fails(odradek, odradek_broker):
    odradek_broker().stop()
    odradek.ask("make_topic_of_test", name="orders")
    raise AssertionError


@pytest.fixture
def fails(odradek):
    odradek.ask("make_topic_of_test", name="payments")
    raise AssertionError


def test_set_up_fails(fails):
    ...


def test_passes(odradek):
    odradek.ask("make_topic_of_test", name="refunds")


def test_fails_without_a_broker():
    raise AssertionError
"""


def test_a_failed_test_shows_what_its_brokers_saw(tmp_path: Path) -> None:
    text = "from tests.support.testing import asking\n" + FAILURES
    done = run_pytest(suite(tmp_path, text), "-q")
    assert "2 failed, 1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("- odradek 127.0.0.1:") == 2, done.stdout
    assert done.stdout.count("The broker was stopped before the test failed.") == 1
    assert "orders" in done.stdout
    assert "payments" in done.stdout
    assert "refunds" not in done.stdout


UNUSED = """
import sys


def test_nothing_of_a_broker_is_imported():
    found = {name for name in sys.modules if name.startswith("odradek")}
    assert found == {"odradek", "odradek.testing", "odradek.testing.pytest_plugin"}
    assert "asyncio" not in sys.modules
"""


def test_a_run_without_brokers_imports_none(tmp_path: Path) -> None:
    done = run_pytest(suite(tmp_path, UNUSED), "-q")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_wrong_line_of_the_ini_file_is_named(tmp_path: Path) -> None:
    text = "def test_x(odradek): ..."
    done = run_pytest(suite(tmp_path, text, "odradek_config =\n  compression.type\n"), "-q")
    assert "expected key=value, not 'compression.type'" in done.stdout, done.stdout + done.stderr


CLUSTERS = """
def test_a_cluster(odradek_cluster):
    cluster = odradek_cluster(2, {"num.partitions": 3}, own_process=False)
    assert len(cluster.bootstrap_servers.split(",")) == 2
    started.append(cluster)


def test_it_is_stopped_when_its_test_is_over(odradek_cluster):
    assert not started[0].brokers


def test_the_report_of_a_failed_test_has_each_broker(odradek_cluster):
    odradek_cluster(2, own_process=False)
    raise AssertionError("on purpose")


started = []
"""


def test_clusters(tmp_path: Path) -> None:
    run = run_pytest(suite(tmp_path, CLUSTERS), "-q")
    assert "2 passed" in run.stdout, run.stdout
    assert "1 failed" in run.stdout, run.stdout
    assert run.stdout.count("odradek 127.0.0.1:") == 2, run.stdout


BROKEN = """
import threading


def test_whose_broker_cannot_report(odradek):
    def ask_soon(name):
        raise ValueError("a broken report")

    odradek.ask_soon = ask_soon
    raise AssertionError


def test_whose_broker_cannot_be_reset(odradek):
    pass


def test_after_it(odradek):
    odradek.stop()


def test_whose_broker_cannot_be_stopped(odradek_broker):
    odradek_broker()
    node = odradek_broker()._node
    stop = node.stop
    node.stop = lambda: (stop().result(), 1 / 0)


def test_whose_cluster_cannot_be_stopped(odradek_cluster):
    odradek_cluster(1, own_process=False)
    node = odradek_cluster(1, own_process=False).brokers[0]._node
    stop = node.stop
    node.stop = lambda: (stop().result(), 1 / 0)


def test_all_is_stopped():
    assert [each for each in threading.enumerate() if each.name.startswith("odradek")] == []
"""


def test_brokers_that_break_fail_their_own_tests_alone(tmp_path: Path) -> None:
    done = run_pytest(suite(tmp_path, BROKEN), "-q")
    assert "The report of the broker cannot be made: ValueError('a broken report')" in done.stdout, done.stdout
    assert "1 failed, 4 passed, 3 errors" in done.stdout, done.stdout + done.stderr
