"""A Prometheus server that scrapes a broker, with the alert rules and the queries of the dashboard.

`make test` does without it, and evaluates them itself: `apt-get install prometheus`.
"""

from __future__ import annotations

import json
import math
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conformance.daemon.test_metrics import MOVES, QUERIES, get, load
from tests.support.in_process.scraping import OPEN_METRICS
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.soak

RULES = REPOSITORY / "docs" / "monitoring" / "alerts.yml"
LINT_STATUS = 3
"""promtool has read everything, and dislikes a name."""


class Server:
    """Scrapes one broker each second."""

    def __init__(self, directory: Path, target: str) -> None:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "kafka", "static_configs": [{"targets": [target]}]}],
        }
        file = directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{address}/api/v1/"
        command = ["prometheus", f"--config.file={file}", f"--web.listen-address={address}"]
        self._log = (directory / "prometheus.log").open("w")
        self._process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={directory / 'data'}"], stdout=self._log, stderr=subprocess.STDOUT
        )

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def ask(self, what: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}{what}?{query}", timeout=10) as response:
            answer = json.load(response)
        assert answer["status"] == "success"
        return answer["data"]

    def values(self, query: str) -> list[float]:
        found = self.ask("query", query=query.replace("$instance", ".*"))
        assert found["resultType"] == "vector"
        return [float(sample["value"][1]) for sample in found["result"]]

    def scrapes(self) -> int:
        """How many there were."""
        try:
            return int(sum(self.values("count_over_time(up[5m])")))
        except OSError:  # it starts
            return 0


class Scraped(NamedTuple):
    """A broker with metrics."""

    bootstrap: str
    target: str


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    port = free_port()
    with running(OdradekBroker(tmp_path_factory.mktemp("broker"), {"odradek.metrics.listener": str(port)})) as broker:
        load(broker.bootstrap, "before")
        yield Scraped(broker.bootstrap, f"127.0.0.1:{port}")


@pytest.fixture(scope="module")
def server(broker: Scraped, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It has scraped the broker before, under and after a load."""
    server = Server(tmp_path_factory.mktemp("prometheus"), broker.target)
    try:
        eventually(lambda: server.scrapes() >= 2, timeout_s=60)
        load(broker.bootstrap, "under-scrapes")
        loaded = server.scrapes()
        eventually(lambda: server.scrapes() >= loaded + 2, timeout_s=60)
        yield server
    finally:
        server.close()


def test_the_target_is_up(server: Server) -> None:
    (found,) = server.ask("targets")["activeTargets"]
    assert (found["health"], found["lastError"]) == ("up", "")


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_of_the_dashboard_gives_numbers(query: str, server: Server) -> None:
    found = server.values(query)
    assert found or query.endswith("> 0")  # errors, of which there are perhaps none
    assert all(math.isfinite(value) for value in found)
    if any(name in query for name in MOVES):
        assert max(found) > 0


def test_no_alert_fires_and_each_rule_is_evaluated(server: Server) -> None:
    (group,) = server.ask("rules")["groups"]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    assert {rule["state"] for rule in group["rules"]} == {"inactive"}
    assert len(group["rules"]) == len(yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"])


@pytest.mark.parametrize("accept", ["text/plain", OPEN_METRICS])
def test_promtool_reads_a_scrape(accept: str, broker: Scraped) -> None:
    _, found = get(f"http://{broker.target}/metrics", accept)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=found.text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (0, LINT_STATUS), done.stderr
    assert "pars" not in done.stderr, done.stderr
