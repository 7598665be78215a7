"""The metrics of a daemon, scraped as Prometheus does."""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from confluent_kafka import Consumer, Producer

from odradek.broker.metrics.families.families import FAMILIES
from tests.support.in_process.scraping import OPEN_METRICS, Scraped
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.promql import PromqlError, Scrapes, evaluate


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


@pytest.fixture(scope="module")
def under_load(tmp_path_factory: pytest.TempPathFactory) -> Scrapes:
    """Two scrapes of a broker, with records produced, consumed and committed before and between them."""
    port = free_port()
    with running(OdradekBroker(tmp_path_factory.mktemp("load"), {"odradek.metrics.listener": str(port)})) as broker:
        url = f"http://127.0.0.1:{port}/metrics"
        load(broker.bootstrap, "first")
        _, earlier = get(url)
        load(broker.bootstrap, "second")
        _, later = get(url)
    return Scrapes(earlier, later, 1.0)


def load(bootstrap: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000})
    for number in range(2000):
        producer.produce("orders", b"x" * 100, key=str(number))
    assert producer.flush(20) == 0
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    read = 0
    while read < 1000:
        read += len(consumer.consume(1000, 5))
    consumer.commit(asynchronous=False)
    consumer.close()


def without_variables(query: str) -> str:
    """Prometheus adds the label `instance`, which a scrape does not have."""
    return query.replace('instance=~"$instance",', "").replace('instance=~"$instance"', "")


DASHBOARD = json.loads((REPOSITORY / "docs" / "monitoring" / "dashboard.json").read_text("utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
RULES = yaml.safe_load((REPOSITORY / "docs" / "monitoring" / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]

MOVES = (
    "brokertopicmetrics_messagesin",
    "brokertopicmetrics_bytesin",
    "brokertopicmetrics_bytesout",
    "requestmetrics_requests_total",
    "consumergroup_lag_sum",
    "kafka_log_log_size",
    "process_resident",
)
"""What the load moves: these queries must give more than zero."""


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_of_the_dashboard_gives_numbers_under_load(query: str, under_load: Scrapes) -> None:
    found = evaluate(without_variables(query), under_load)
    assert isinstance(found, dict)
    assert found or query.endswith("> 0")  # errors, of which there are perhaps none
    assert all(math.isfinite(value) for value in found.values())
    if any(name in query for name in MOVES):
        assert max(found.values()) > 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_no_alert_fires_on_a_healthy_broker_and_each_can(rule: dict[str, str], under_load: Scrapes) -> None:
    """The condition is met by some value of its metric: its left side alone has one.

    A broker of a few seconds has so few measurements of its event loop that their 99th percentile is the longest, which
    any other process of the machine may have caused; half of them must be short.
    """
    assert evaluate(rule["expr"].replace('quantile="0.99"', 'quantile="0.5"'), under_load) == {}
    metric = re.split(r" (?:[<>]|[!=]=) ", rule["expr"])[0]
    assert evaluate(metric, under_load) != {} or "increase" in metric


@pytest.mark.parametrize(
    "query", ["rate(process_open_fds[1m])", "no_such_metric", "histogram_quantile(0.9, up)", "up +"]
)
def test_the_evaluator_refuses_what_it_does_not_know(query: str, under_load: Scrapes) -> None:
    with pytest.raises(PromqlError):
        evaluate(query, under_load)
