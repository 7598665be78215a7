"""Counts what a Fetch sends, for the metrics and, to a follower, for the throttle of replication.

Kafka: KafkaApis.handleFetchRequest, BrokerTopicStats.updateBytesOut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from odradek.broker.fetch.fetch_session import PARTITIONS_A_STEP, Answers, records_size
from odradek.protocol.codec.arrays.mapped import OneOutcome, Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import EMPTY_RECORDS
from odradek.storage.segment.file_records import FileRegion
from odradek.timer.sliced_work import Wait

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
    from odradek.timer.sliced_work import Steps


def account(
    broker: Services,
    ctx: RequestContext,
    response: FetchResponse,
    replica_id: int,
    stats: BrokerTopicStats | None,
    answers: Answers | None,
) -> Iterable[Wait | None] | None:
    """Count what is sent for the metrics and, to a follower, for the throttle. `answers`: None if any has records to
    convert. No generator for the most frequent response, to a consumer and with one partition: that would cost as much
    as the counting.
    """
    if replica_id >= 0:
        return _account_for_follower(broker, ctx, response, replica_id, stats)
    assert stats is not None, "metrics are on"
    if answers is None or len(answers) != 1:
        return _account_for_topics(stats, response, None if answers is None else ctx)
    ((fetch, data),) = answers
    records = data.records
    if type(records) is FileRegion:  # the most frequent type; an isinstance with all of them costs as much as the rest
        stats.topics[fetch.topic or ""].bytes_out += records.size_in_bytes
    elif size := records_size(data):
        stats.topics[fetch.topic or ""].bytes_out += size
    counter = ctx.counter
    if counter is not None and response.responses and not (data.error_code or response.error_code):
        counter.plain += 1
        ctx.counter = None
    return None


def answered(topic: FetchableTopicResponse) -> Iterable[PartitionData]:
    """The partitions that were read, and others."""
    partitions = topic.partitions
    return partitions.whole if isinstance(partitions, (Outcomes, OneOutcome)) else partitions


def _account_for_topics(
    stats: BrokerTopicStats, response: FetchResponse, counted: RequestContext | None
) -> Iterator[None]:
    """`counted`: the request, if its error codes can be counted, too; None while records are to be converted."""
    partitions = 0
    has_errors = response.error_code != ErrorCode.NONE
    for number, topic in enumerate(response.responses):
        if number:
            yield None
        size = 0
        partitions += len(topic.partitions)
        found: Iterable[PartitionData] = topic.partitions
        if type(found) is not list:
            has_errors, found = True, answered(topic)
        for data in found:
            records = data.records
            if records is EMPTY_RECORDS:  # read without an error, as most partitions of a large fetch are
                continue
            if type(records) is FileRegion:  # as in `account`
                size += records.size_in_bytes
            else:
                size += records_size(data)
                has_errors = has_errors or data.error_code != ErrorCode.NONE
        if size:
            stats.sent(topic.topic, size)
    if counted is not None and counted.counter is not None and not has_errors:
        counted.counter.plain += 1
        counted.counter.plain_codes += partitions - 1
        counted.counter = None


def _account_for_follower(
    broker: Services, ctx: RequestContext, response: FetchResponse, replica_id: int, stats: BrokerTopicStats | None
) -> Steps:
    """Count what is sent for the metrics and the throttle. For this Kafka counts the few bytes around records too."""
    if ctx.times is not None:
        broker.quotas.request.charge_exempt(ctx)
    throttle, partitions = broker.replica_manager.reads.throttle, broker.replica_manager.partitions
    number = 0
    for topic in response.responses:
        found = topic.partitions
        for data in found if type(found) is list else answered(topic):
            number += 1
            if number % PARTITIONS_A_STEP == 0:
                yield None
            records = data.records
            if records is EMPTY_RECORDS or not (size := records_size(data)):
                continue
            partition = partitions.hosted(new_tuple(TopicPartition, (topic.topic, data.partition_index)))
            if stats is not None:
                stats.replication_bytes_out += size
                if partition is not None and replica_id in partition.adding_replicas:
                    stats.reassignment_bytes_out += size
            if partition is not None and throttle.covers(partition):
                throttle.record(size)
