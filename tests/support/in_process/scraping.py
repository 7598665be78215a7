"""Metrics of a broker in this process, read as Prometheus reads them."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.dispatch import Dispatcher
from odradek.broker.metrics.metrics import Metrics
from odradek.broker.network.listeners.socket_server import SocketServer
from odradek.protocol.api import ApiKey
from odradek.protocol.messages.produce import ProduceResponse
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import batch, build

OPEN_METRICS = "application/openmetrics-text;version=1.0.0"

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scraped:
    """The samples of one scrape."""

    def __init__(self, text: str, *, is_open_metrics: bool = False) -> None:
        self.text = text
        self.families = list((parse_openmetrics if is_open_metrics else parse_text)(text))
        self.samples = [sample for family in self.families for sample in family.samples]
        self.values: Values = {(one.name, frozenset(one.labels.items())): one.value for one in self.samples}

    def value(self, name: str, **labels: str) -> float:
        return self.values[name, frozenset(labels.items())]

    def labels_of(self, name: str) -> list[dict[str, str]]:
        return [sample.labels for sample in self.samples if sample.name == name]


class ScrapedBroker:
    """A broker whose metrics are on, without their endpoint."""

    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker
        sockets = SimpleNamespace(
            closed_by_reason=Counter(),
            connections={},
            end_points=(),
            authentication_counts={},
            memory_pool=None,
            accept_rates=lambda: (0.0, {}),
        )
        dispatcher = cast("Dispatcher", broker.services.spawn.__self__)  # type: ignore[attr-defined]
        self.metrics = Metrics(broker.services, cast("SocketServer", sockets), dispatcher.count_with)
        self.sources = self.metrics._sources

    def scrape(self, accept: str = "") -> Scraped:
        """One scrape; the broker's timer runs what is due."""
        rendering = self.broker.loop.create_task(self._render(accept))
        while not rendering.done():
            self.broker.advance(0)
        content_type, parts = rendering.result()
        return Scraped(
            b"".join(parts).decode(), is_open_metrics=content_type.startswith("application/openmetrics-text")
        )

    async def _render(self, accept: str) -> tuple[str, list[bytes]]:
        return await self.metrics.render(accept)


def produce(broker: InProcessBroker, topic: str, records: bytes = b"", *, partition: int = 0, error: int = 0) -> None:
    """Produce a batch, of one record if none is given, and expect this error code."""
    parts = [{"index": partition, "records": records or batch(b"value")}]
    topics = [{"name": topic, "partition_data": parts}]
    request = build(ApiKey.PRODUCE, acks=-1, timeout_ms=1_000, topic_data=topics)
    response = cast("ProduceResponse", broker.call(request, 11))
    assert response.responses[0].partition_responses[0].error_code == error
