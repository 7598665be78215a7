from __future__ import annotations

from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce


def test_a_log_that_a_move_fills_is_marked_as_in_kafka(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    logs = broker.services.log_manager
    log = logs.get_log(TopicPartition("t", 0))
    assert log is not None
    local = log.local_log
    local.dir += "-future"
    (labels,) = scraped.scrape().labels_of("kafka_log_log_size")
    local.dir = local.dir.removesuffix("-future")
    assert labels == {"topic": "t", "partition": "0", "is_future": "true"}


def test_a_topic_that_only_other_brokers_host_has_no_counters(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    """As when a reassignment has moved its last replica away."""
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    for topic in ("moved", "kept"):
        broker.create_topic(topic)
        produce(broker, topic)
    broker.services.replica_manager.partitions.forget(TopicPartition("moved", 0))
    assert broker.services.metadata_cache.contains("moved")
    found = scraped.scrape()
    assert found.labels_of(name) == [{}, {"topic": "kept"}]
    assert found.value(name) == 2
