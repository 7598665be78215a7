"""Metrics of topics: records and bytes in and out.

Kafka: BrokerTopicMetrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.meters.broker_topic_stats import BrokerTopicMetrics
from odradek.broker.metrics.family import Family, Sample, counter, counters
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View

_MBEAN: Final = "kafka.server:type=BrokerTopicMetrics,name="


def _of_topics(mbean: str, description: str, value: Callable[[BrokerTopicMetrics], int]) -> Family:
    def read(view: View) -> Iterator[Sample]:
        stats = view.topic_stats
        yield "", value(view.all_topics)
        if not view.has_too_many_topics:
            for topic, counted in list(stats.topics.items()):
                yield labelled(topic=topic), value(counted)

    return counters(_name(mbean), ("topic",), description, read, mbean=f"{_MBEAN}{mbean}")


def _of_all(mbean: str, description: str, value: Callable[[View], int]) -> Family:
    return counter(_name(mbean), description, value, mbean=f"{_MBEAN}{mbean}")


def _name(mbean: str) -> str:
    return f"kafka_server_brokertopicmetrics_{mbean.removesuffix('PerSec').lower()}_total"


TOPIC_FAMILIES: Final = (
    _of_topics("MessagesInPerSec", "Records that producers sent.", lambda topic: topic.messages_in),
    _of_topics("BytesInPerSec", "Bytes that producers sent.", lambda topic: topic.bytes_in),
    _of_topics("BytesOutPerSec", "Bytes that were sent to consumers.", lambda topic: topic.bytes_out),
    _of_topics("BytesRejectedPerSec", "Bytes of batches above max.message.bytes.", lambda topic: topic.bytes_rejected),
    _of_topics(
        "TotalProduceRequestsPerSec", "Partitions of produce requests.", lambda topic: topic.total_produce_requests
    ),
    _of_topics(
        "FailedProduceRequestsPerSec",
        "Partitions of produce requests that failed for another reason than clients meet in normal operation.",
        lambda topic: topic.failed_produce_requests,
    ),
    _of_topics("TotalFetchRequestsPerSec", "Partitions of fetch requests.", lambda topic: topic.total_fetch_requests),
    _of_topics(
        "FailedFetchRequestsPerSec",
        "Reads that failed for another reason than clients meet in normal operation.",
        lambda topic: topic.failed_fetch_requests,
    ),
    _of_topics(
        "FetchMessageConversionsPerSec",
        "Records that were down-converted for old consumers.",
        lambda topic: topic.fetch_message_conversions,
    ),
    _of_topics(
        "ProduceMessageConversionsPerSec",
        "Records of producers that were written anew: in another format, or with another codec.",
        lambda topic: topic.produce_message_conversions,
    ),
    _of_all(
        "ReplicationBytesInPerSec",
        "Bytes that followers here fetched.",
        lambda view: view.topic_stats.replication_bytes_in,
    ),
    _of_all(
        "ReplicationBytesOutPerSec", "Bytes sent to followers.", lambda view: view.topic_stats.replication_bytes_out
    ),
    _of_all(
        "ReassignmentBytesInPerSec",
        "Of the bytes that followers here fetched, those of partitions that a reassignment adds.",
        lambda view: view.topic_stats.reassignment_bytes_in,
    ),
    _of_all(
        "ReassignmentBytesOutPerSec",
        "Of the bytes sent to followers, those for replicas that a reassignment adds.",
        lambda view: view.topic_stats.reassignment_bytes_out,
    ),
    _of_all(
        "NoKeyCompactedTopicRecordsPerSec",
        "Records without a key that compacted topics refused.",
        lambda view: view.topic_stats.no_key_compacted_topic_records,
    ),
    _of_all(
        "InvalidMagicNumberRecordsPerSec",
        "Partitions of produce requests with batches of several formats.",
        lambda view: view.topic_stats.invalid_magic_number_records,
    ),
    _of_all(
        "InvalidOffsetOrSequenceRecordsPerSec",
        "Partitions of produce requests whose batch had impossible offsets, a wrong count or a wrong sequence.",
        lambda view: view.topic_stats.invalid_offset_or_sequence_records,
    ),
    _of_all(
        "InvalidMessageCrcRecordsPerSec",
        "Partitions of produce requests whose batch had a wrong checksum.",
        lambda view: view.topic_stats.invalid_message_crc_records,
    ),
)
