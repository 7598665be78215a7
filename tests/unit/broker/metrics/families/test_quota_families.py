from __future__ import annotations

import pytest

from odradek.broker.metrics.families import quota_families
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker

PRINCIPAL = "User:ANONYMOUS"


def test_nothing_of_clients_is_there_without_quotas(scraped: ScrapedBroker) -> None:
    found = scraped.scrape()
    assert found.value("kafka_server_produce_queue_size") == 0
    assert found.value("kafka_server_request_exempt_request_time") == 0


def test_what_clients_use_and_how_long_they_wait(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    quotas = broker.services.quotas
    quotas.config_changed("clients/app", {"producer_byte_rate": "100"})
    throttle_ms = quotas.produce.record_and_get_throttle_time_ms(PRINCIPAL, "app", 5_000)
    assert throttle_ms == 40_000
    sensors = quotas.produce.sensors.get_or_create(("", "app"), broker.clock.monotonic_ms())
    sensors.record_throttle_time(throttle_ms, broker.clock.monotonic_ms())
    quotas.produce.queue_size += 1
    quotas.fetch.record_no_throttle(PRINCIPAL, 'a "b"', 300)
    found = scraped.scrape()
    assert found.value("kafka_server_produce_byte_rate", user="", client_id="app") == 500
    assert found.value("kafka_server_produce_throttle_time", user="", client_id="app") == 40_000
    assert found.value("kafka_server_produce_queue_size") == 1
    assert found.value("kafka_server_fetch_byte_rate", user="", client_id='a "b"') == 30


@pytest.mark.parametrize(("most", "series"), [(3, 3), (2, 0)])
def test_many_clients_have_no_series(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch, most: int, series: int
) -> None:
    monkeypatch.setattr(quota_families, "MAX_CLIENTS", most)
    quotas = broker.services.quotas
    quotas.config_changed("clients/app", {"producer_byte_rate": "100"})
    for number in range(3):
        quotas.produce.record_no_throttle(PRINCIPAL, f"client-{number}", 1)
    assert len(scraped.scrape().labels_of("kafka_server_produce_byte_rate")) == series
