from __future__ import annotations

from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce
from tests.support.wire.requests import batch


def test_what_producers_send_is_counted_by_topic_and_in_all(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", configs={"max.message.bytes": "500"})
    produce(broker, "t", batch(b"one", b"two"))
    large = batch(b"x" * 1000)
    produce(broker, "t", large, error=10)
    found = scraped.scrape()
    prefix = "kafka_server_brokertopicmetrics_"
    for labels in ({}, {"topic": "t"}):
        assert found.value(f"{prefix}messagesin_total", **labels) == 2
        assert found.value(f"{prefix}bytesin_total", **labels) == len(batch(b"one", b"two"))
        assert found.value(f"{prefix}totalproducerequests_total", **labels) == 2
        assert found.value(f"{prefix}failedproducerequests_total", **labels) == 0
        assert found.value(f"{prefix}bytesrejected_total", **labels) == len(large)


def test_above_the_limit_of_topics_only_the_sums_are_left(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    for number in range(4):
        broker.create_topic(f"t{number}")
        produce(broker, f"t{number}")
        assert len(scraped.scrape().labels_of(name)) == (number + 2 if number < 3 else 1)
