from __future__ import annotations

from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker


def test_an_api_has_its_requests_its_errors_its_times_and_its_sizes(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.call(HeartbeatRequest(group_id="g", member_id="m"), 4)
    found = scraped.scrape()
    prefix = "kafka_network_requestmetrics_"
    assert found.value(f"{prefix}requests_total", request="Heartbeat", version="4") == 1
    assert [labels["error"] for labels in found.labels_of(f"{prefix}errors_total") if labels["request"] == "Heartbeat"]
    for part in ("requestqueue", "local", "remote", "throttle", "responsequeue", "responsesend", "total"):
        assert found.value(f"{prefix}{part}timems_count", request="Heartbeat") == 1
        assert found.value(f"{prefix}{part}timems", request="Heartbeat", quantile="0.99") == 0
    assert found.value(f"{prefix}requestbytes", request="Heartbeat", quantile="0.50") > 10


def test_requests_in_deprecated_versions(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    name = "kafka_network_requestmetrics_deprecatedrequests_total"
    broker.call(ListOffsetsRequest(), 1)
    assert not scraped.scrape().labels_of(name)
    for _ in range(3):
        broker.call(ListOffsetsRequest(), 0)
    software = {"clientSoftwareName": "", "clientSoftwareVersion": ""}
    assert scraped.scrape().value(name, request="ListOffsets", version="0", **software) == 3
