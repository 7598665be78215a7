from __future__ import annotations

import asyncio
from itertools import chain, count
from types import SimpleNamespace
from typing import cast

import pytest

from odradek.broker.apis.services import SMALL_REQUEST_PARTITIONS
from odradek.broker.metrics.families.families import FAMILIES
from odradek.broker.metrics.view import View
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import SlicedWork, Steps
from tests.support.call_count import counted_calls
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import OPEN_METRICS, Scraped, ScrapedBroker, produce
from tests.support.wire.requests import batch, build

ERRORS_OF_FETCH = ("NONE", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION")


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


MOST_CALLS_A_STEP = 1_300
"""A step makes `SAMPLES_A_STEP` samples with a few calls each: a tenth of a millisecond."""
PARTITIONS = MOST_CALLS_A_STEP + 100


def test_no_step_of_a_scrape_grows_with_the_partitions_or_the_topics(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    sources = scraped.metrics._sources
    for topic, partitions in (("t", PARTITIONS), ("t1", 1), ("t2", 1)):
        broker.create_topic(topic, partitions)
    topics = [f"t{number}" for number in range(PARTITIONS)]
    for topic in topics:
        sources.topic_stats.topics[topic].total_fetch_requests += 1
    view, parts = View(sources), list[bytes]()
    most = 0
    with counted_calls() as count:
        for _ in chain(view.prepare(), scraped.metrics._text.steps(view, "", parts)):
            most, count.calls = max(most, count.calls), 0
    found = Scraped(b"".join(parts).decode())
    assert len(found.labels_of("kafka_log_log_size")) == PARTITIONS + 2
    assert len(found.labels_of("kafka_server_brokertopicmetrics_messagesin_total")) == 2 + 1
    assert most < MOST_CALLS_A_STEP


def test_a_scrape_that_nobody_waits_for_ends(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    submitted: list[Steps] = []
    scraped.metrics._slices = cast("SlicedWork", SimpleNamespace(submit=submitted.append))
    waiting = broker.loop.create_task(scraped.metrics.render(""))
    broker.loop.run_until_complete(asyncio.sleep(0))
    (steps,) = submitted
    next(steps)
    waiting.cancel()
    broker.loop.run_until_complete(asyncio.wait([waiting]))
    assert list(steps) == []


def test_requests_with_one_partition_are_counted_as_others_are(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    """Their handlers count them, not what looks at each response."""
    broker.create_topic("t", 2)
    produce(broker, "t")
    produce(broker, "unknown", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for replica_id, partitions, offset in ((-1, 1, 0), (-1, 2, 0), (-1, 1, 99), (0, 1, 0)):
        parts = [
            {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1000} for number in range(partitions)
        ]
        topics = [{"topic": "t", "partitions": parts}]
        fetch = build(ApiKey.FETCH, replica_id=replica_id, max_bytes=1000, session_epoch=-1, topics=topics)
        broker.call(fetch, 12)
    found = scraped.scrape()

    def errors(request: str, error: str) -> float:
        return found.value("kafka_network_requestmetrics_errors_total", request=request, error=error)

    def requests(name: str, version: str) -> float:
        return found.value("kafka_network_requestmetrics_requests_total", request=name, version=version)

    assert (errors("Produce", "NONE"), errors("Produce", "UNKNOWN_TOPIC_OR_PARTITION")) == (1, 1)
    assert requests("Produce", "11") == 2
    assert requests("Fetch", "12") == 4
    assert (requests("FetchConsumer", "12"), requests("FetchFollower", "12")) == (3, 1)
    assert errors("Fetch", "NONE") == 2 + 3 + 1 + 1, "the code of the response and those of its partitions"
    assert errors("Fetch", "OFFSET_OUT_OF_RANGE") == 1


@pytest.mark.parametrize("partitions", [2, 2 * SMALL_REQUEST_PARTITIONS])
def test_each_partition_of_a_produce_is_counted(
    broker: InProcessBroker, scraped: ScrapedBroker, partitions: int
) -> None:
    broker.create_topic("t", partitions)
    parts = [{"index": index, "records": batch(b"value")} for index in range(partitions)]
    topics = [{"name": "t", "partition_data": parts}]
    for _ in range(2):
        broker.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=1_000, topic_data=topics), 11)
    found = scraped.scrape()
    prefix = "kafka_network_requestmetrics_"
    assert found.value(f"{prefix}requests_total", request="Produce", version="11") == 2
    assert found.value(f"{prefix}errors_total", request="Produce", error="NONE") == 2 * partitions
    assert found.value(f"{prefix}totaltimems_count", request="Produce") == 2
    assert found.value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 2 * partitions
    assert found.value("kafka_server_brokertopicmetrics_totalproducerequests_total", topic="t") == 2 * partitions


@pytest.mark.parametrize("partitions", [2, 2 * SMALL_REQUEST_PARTITIONS])
def test_each_partition_of_a_fetch_is_counted(broker: InProcessBroker, scraped: ScrapedBroker, partitions: int) -> None:
    """One that has records, those that have none, one that is asked for a wrong offset, and one that does not exist."""
    broker.create_topic("t", partitions)
    produce(broker, "t")
    for offset, index in ((0, 1), (99, 1), (0, partitions)):
        parts = [{"partition": each, "fetch_offset": 0, "partition_max_bytes": 1000} for each in range(partitions)]
        parts[1] = {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1000}
        topics = [{"topic": "t", "partitions": parts}]
        broker.call(build(ApiKey.FETCH, max_bytes=1000, session_epoch=-1, topics=topics), 12)
    found = scraped.scrape()
    prefix = "kafka_network_requestmetrics_"
    errors = {error: found.value(f"{prefix}errors_total", request="Fetch", error=error) for error in ERRORS_OF_FETCH}
    assert errors == {"NONE": 3 + 3 * partitions - 2, "OFFSET_OUT_OF_RANGE": 1, "UNKNOWN_TOPIC_OR_PARTITION": 1}
    assert found.value(f"{prefix}requests_total", request="Fetch", version="12") == 3
    assert found.value("kafka_server_brokertopicmetrics_bytesout_total", topic="t") == 3 * len(batch(b"value"))
    assert found.value("kafka_server_brokertopicmetrics_totalfetchrequests_total", topic="t") == 3 * partitions - 1


def test_each_partition_of_a_commit_is_counted(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
    assert broker.settle(lambda: broker.services.metadata_cache.contains("__consumer_offsets"))
    for indexes in ([0, 1, 2], [0, 9], [0]):
        parts = [{"partition_index": index, "committed_offset": 1, "committed_metadata": ""} for index in indexes]
        topics = [{"name": "t", "partitions": parts}]
        commit = build(ApiKey.OFFSET_COMMIT, group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        answered = broker.call(commit, 8).topics[0].partitions  # type: ignore[attr-defined]
        assert [part.partition_index for part in answered] == sorted(indexes, reverse=len(indexes) == 2)
    found = scraped.scrape()
    prefix = "kafka_network_requestmetrics_"
    assert found.value(f"{prefix}requests_total", request="OffsetCommit", version="8") == 3
    assert found.value(f"{prefix}totaltimems_count", request="OffsetCommit") == 3
    assert found.value(f"{prefix}errors_total", request="OffsetCommit", error="NONE") == 3 + 1 + 1
    assert found.value(f"{prefix}errors_total", request="OffsetCommit", error="UNKNOWN_TOPIC_OR_PARTITION") == 1


def test_a_timed_produce_whose_records_are_written_anew_has_the_time_of_that(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t", configs={"compression.type": "gzip"})
    log = broker.services.log_manager.get_log(TopicPartition("t", 0))
    assert log is not None
    log._monotonic_ns = count(0, 3_000_000).__next__
    produce(broker, "t", batch(*[b"value" * 1_000] * 10))
    found = scraped.scrape()
    prefix = "kafka_network_requestmetrics_"
    assert found.value(f"{prefix}messageconversionstimems", request="Produce", quantile="0.99") == 3
    assert found.value(f"{prefix}temporarymemorybytes", request="Produce", quantile="0.99") > 0
