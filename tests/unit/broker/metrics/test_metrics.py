from __future__ import annotations

from odradek.broker.metrics.families import FAMILIES
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import OPEN_METRICS, ScrapedBroker, produce


def test_each_sample_is_of_a_family_of_the_table_with_its_labels(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    table = {family.name.removesuffix("_total"): set(family.labels) for family in FAMILIES}
    ours = [each for each in scraped.scrape().families if each.name.startswith(("kafka_", "odradek_"))]
    assert ours
    for family in ours:
        labels = table[family.name.removesuffix("_total")]
        for sample in family.samples:
            assert set(sample.labels) <= labels, sample


def test_both_formats_have_the_same_samples(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    text, open_metrics = scraped.scrape(), scraped.scrape(OPEN_METRICS)
    assert open_metrics.text.endswith("# EOF\n")
    assert {name for name, _ in text.values if name.startswith("kafka_")} == {
        name for name, _ in open_metrics.values if name.startswith("kafka_")
    }
    assert text.value("process_start_time_seconds") == open_metrics.value("process_start_time_seconds")


def test_requests_are_counted_from_the_start_of_the_metrics(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.call(MetadataRequest(topics=[]), 12)
    broker.call(MetadataRequest(topics=[]), 12)
    found = scraped.scrape()
    assert found.value("kafka_network_requestmetrics_requests_total", request="Metadata", version="12") == 2
    assert found.value("kafka_network_requestmetrics_totaltimems_count", request="Metadata") == 2


def test_the_counters_of_a_deleted_topic_are_gone(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert {"topic": "t"} in scraped.scrape().labels_of(name)
    broker.delete_topic("t")
    assert scraped.scrape().labels_of(name) == [{}]
