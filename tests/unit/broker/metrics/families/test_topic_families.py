from __future__ import annotations

from typing import cast

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce
from tests.support.wire.requests import batch, build, message_set


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


def test_what_is_sent_to_a_replica_that_is_being_added_is_counted_again(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.in_sync.update_assignment_and_isr([0, 7, 8], [0])
    partition.adding_replicas = [8]
    fetch(broker, replica_id=7)
    prefix = "kafka_server_brokertopicmetrics_"
    assert scraped.scrape().value(f"{prefix}reassignmentbytesout_total") == 0
    fetch(broker, replica_id=8)
    found = scraped.scrape()
    assert found.value(f"{prefix}reassignmentbytesout_total") == len(batch(b"value"))
    assert found.value(f"{prefix}replicationbytesout_total") == 2 * len(batch(b"value"))
    assert found.value(f"{prefix}reassignmentbytesin_total") == 0


def with_invalid_sequence() -> bytes:
    fields = {"record_count": 1, "last_offset_delta": 0, "base_timestamp": 1, "max_timestamp": 1, "attributes": 0}
    payload = RecordBatch(memoryview(batch(b"one", key=b"k"))).payload
    return bytes(assemble_batch(payload, base_offset=0, producer_id=5, producer_epoch=0, **fields))


def test_refused_records_are_counted_by_their_fault(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", configs={"cleanup.policy": "compact"})
    prefix = "kafka_server_brokertopicmetrics_"
    names = ("nokeycompactedtopicrecords", "invalidmagicnumberrecords", "invalidoffsetorsequencerecords")

    def counts() -> list[float]:
        found = scraped.scrape()
        return [found.value(f"{prefix}{name}_total") for name in names]

    produce(broker, "t", batch(b"one", key=b"k"))
    assert counts() == [0, 0, 0]
    produce(broker, "t", batch(b"one", b"two"), error=ErrorCode.INVALID_RECORD)
    assert counts() == [2, 0, 0]
    produce(broker, "t", with_invalid_sequence(), error=ErrorCode.INVALID_RECORD)
    assert counts() == [2, 0, 1]
    mixed = message_set(1, b"one", key=b"k") + message_set(0, b"two", key=b"k")
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": mixed}]}]
    request = build(ApiKey.PRODUCE, acks=1, timeout_ms=1_000, topic_data=topics)
    response = cast("ProduceResponse", broker.call(request, 2))
    assert response.responses[0].partition_responses[0].error_code != ErrorCode.NONE
    assert counts() == [2, 1, 1]
