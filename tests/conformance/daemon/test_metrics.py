"""The metrics of a daemon, scraped as Prometheus does."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.broker.metrics.families import FAMILIES
from tests.support.in_process.scraping import OPEN_METRICS, Scraped
from tests.support.processes.odradek_process import OdradekBroker, running


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    settings = {"odradek.metrics.listener": str(port)}
    with running(OdradekBroker(tmp_path_factory.mktemp("metrics"), settings)):
        yield f"http://127.0.0.1:{port}/metrics"


def get(url: str, accept: str = "text/plain") -> tuple[str, Scraped]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as response:
        kind = response.headers["Content-Type"]
        return kind, Scraped(response.read().decode(), is_open_metrics=kind.startswith("application/openmetrics-text"))


def test_a_port_alone_is_one_on_loopback_and_each_metric_is_there(url: str) -> None:
    kind, found = get(url)
    assert kind.startswith("text/plain; version=0.0.4")
    names = {family.name for family in found.families}
    assert {family.name.removesuffix("_total") for family in FAMILIES} <= names
    assert {"process_cpu_seconds", "process_open_fds", "python_info"} <= names
    assert found.value("kafka_controller_kafkacontroller_activecontrollercount") == 1


def test_openmetrics_to_whom_asks_for_it(url: str) -> None:
    kind, found = get(url, OPEN_METRICS)
    assert kind.startswith("application/openmetrics-text")
    assert found.value("kafka_server_kafkaserver_brokerstate") == 3


def test_nothing_else_is_served(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url.replace("/metrics", "/"), timeout=10)


def test_without_the_key_nothing_listens(tmp_path: Path) -> None:
    with running(OdradekBroker(tmp_path)) as broker:
        process = psutil.Process(broker.pid)
        listening = {one.laddr.port for one in process.net_connections() if one.status == psutil.CONN_LISTEN}
        assert listening == {broker.port}
