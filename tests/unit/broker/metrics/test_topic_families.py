from __future__ import annotations

from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.topic_partition import TopicPartition
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


def fetch(broker: InProcessBroker, replica_id: int = -1) -> None:
    parts = [FetchPartition(partition=0, partition_max_bytes=1 << 20)]
    broker.call(FetchRequest(replica_id=replica_id, topics=[FetchTopic(topic="t", partitions=parts)]), 12)


def test_what_consumers_and_followers_fetch_is_counted_apart(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    fetch(broker)
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.in_sync.update_assignment_and_isr([0, 7], [0])
    fetch(broker, replica_id=7)
    fetch(broker, replica_id=7)
    found = scraped.scrape()
    prefix = "kafka_server_brokertopicmetrics_"
    assert found.value(f"{prefix}bytesout_total", topic="t") == len(batch(b"value"))
    assert found.value(f"{prefix}replicationbytesout_total") == 2 * len(batch(b"value"))
    assert found.value(f"{prefix}totalfetchrequests_total", topic="t") == 3


def test_above_the_limit_of_topics_only_the_sums_are_left(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    for number in range(4):
        broker.create_topic(f"t{number}")
        produce(broker, f"t{number}")
        assert len(scraped.scrape().labels_of(name)) == (number + 2 if number < 3 else 1)
