"""WriteTxnMarkers (key 27), served: 0-1.

Writes markers to partitions that this broker leads, for a transaction coordinator or for an administrator who ends a
hanging transaction. v1: flexible encoding. When a partition of `__consumer_offsets` has its marker, the offsets of the
transaction are committed or dropped.

Kafka: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter, index
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import authorize, authorize_cluster
from odradek.broker.apis.named_partitions import common_outcome_or_each, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC
from odradek.protocol.codec.arrays.mapped import Mapped, Zipped
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.layout import MAGIC_V2
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.timer.repeated_items import repeated
from odradek.timer.sliced_work import chosen, listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

_Outcome: TypeAlias = "int | Sequence[WritableTxnMarkerTopicResult]"
"""Of a marker: the code of each partition that it names, or the topics of the answer."""

_PRODUCER_ID: Final = attrgetter("producer_id")


@in_slices
def handle(broker: Services, ctx: RequestContext, request: WriteTxnMarkersRequest) -> Steps:
    # An administrator who ends a hanging transaction may alter the cluster; a broker has ClusterAction.
    if not authorize(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    yield from apply(broker, request, ctx.reply)


def apply(
    broker: Services, request: WriteTxnMarkersRequest, respond: Callable[[WriteTxnMarkersResponse], None]
) -> Steps:
    """Write the markers, a partition a step; `respond` is called when all of them have reached the replicas."""
    is_invalid = yield from listed(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in request.markers)
    if any(is_invalid):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka raises an exception when it builds the batch
    outcomes: list[_Outcome] = [ErrorCode.NONE] * len(request.markers)
    left = len(request.markers)

    def finish(number: int, outcome: _Outcome) -> None:
        nonlocal left
        outcomes[number] = outcome
        left -= 1
        if not left:
            broker.slices.submit(_respond(request.markers, outcomes, respond))

    if not left:
        respond(WriteTxnMarkersResponse())
    for number, marker in enumerate(request.markers):
        yield from _write(broker, marker, partial(finish, number))
        yield None


def _write(broker: Services, marker: WritableTxnMarker, finish: Callable[[_Outcome], None]) -> Steps:
    replicas = broker.replica_manager
    if not marker.topics:
        finish(())
        return
    batch = _batch(broker, marker)
    records: dict[TopicPartition, memoryview] = {}
    named = yield from named_partitions(Mapped(_split, marker.topics), index)
    errors = array("h")
    places: list[int] = []
    for topic_partition in named:
        partition = replicas.hosted(topic_partition)
        if partition is None or partition.log is None:
            errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif partition.log.config.record_version < MAGIC_V2:
            errors.append(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
        else:
            places.append(len(errors))
            errors.append(ErrorCode.NONE)
            records[topic_partition] = memoryview(bytearray(batch))
        yield None
    if not records:
        finish(common_outcome_or_each(named, errors, _topic, _result))
        return

    def written(results: Mapping[TopicPartition, LogAppendResult]) -> None:
        for place, topic_partition in zip(places, records, strict=True):
            errors[place] = results[topic_partition].error
        _complete_offsets(broker, marker, results)
        finish(common_outcome_or_each(named, errors, _topic, _result))

    yield from replicas.append_in_steps(
        timeout_ms=broker.config.request_timeout_ms,
        required_acks=-1,
        internal_topics_allowed=True,
        origin=AppendOrigin.COORDINATOR,
        records=records,
        respond=written,
    )


def _batch(broker: Services, marker: WritableTxnMarker) -> bytes | bytearray:
    kind = ControlRecordType.COMMIT if marker.transaction_result else ControlRecordType.ABORT
    return build_end_transaction_batch(
        EndTransactionMarker(type=kind, coordinator_epoch=marker.coordinator_epoch),
        timestamp=broker.clock.time_ms(),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )


def _complete_offsets(
    broker: Services, marker: WritableTxnMarker, results: Mapping[TopicPartition, LogAppendResult]
) -> None:
    completed = [
        tp.partition
        for tp, result in results.items()
        if tp.topic == GROUP_METADATA_TOPIC and result.error == ErrorCode.NONE
    ]
    if completed:
        broker.group_coordinator.on_transaction_completed(
            marker.producer_id, completed, committed=marker.transaction_result
        )


def _respond(
    markers: Sequence[WritableTxnMarker],
    outcomes: Sequence[_Outcome],
    respond: Callable[[WriteTxnMarkersResponse], None],
) -> Steps:
    """One element for each producer of which a marker names partitions."""
    twice = yield from repeated(Mapped(_PRODUCER_ID, markers))
    without_partitions = yield from chosen(outcomes, _names_nothing)
    if not twice and not without_partitions:
        respond(WriteTxnMarkersResponse(markers=Zipped(_of_marker, markers, outcomes)))
        return
    results: list[WritableTxnMarkerResult] = []
    several: dict[int, dict[TopicPartition, int]] = {}
    for marker, outcome in zip(markers, outcomes, strict=True):
        yield None
        if _names_nothing(outcome):
            continue
        result = _of_marker(marker, outcome)
        if marker.producer_id in twice:
            yield from _add(several.setdefault(marker.producer_id, {}), result.topics)
        else:
            results.append(result)
    for producer_id, errors in several.items():
        topics = yield from _by_topic(errors)
        results.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
        yield None
    respond(WriteTxnMarkersResponse(markers=results))


def _names_nothing(outcome: _Outcome) -> bool:
    return not isinstance(outcome, int) and not outcome


def _add(errors: dict[TopicPartition, int], topics: Iterable[WritableTxnMarkerTopicResult]) -> Steps:
    """The results of one more marker of a producer: of a partition that is in several, the last one counts."""
    for topic in topics:
        for partition in topic.partitions:
            errors[TopicPartition(topic.name, partition.partition_index)] = partition.error_code
            yield None


def _by_topic(errors: Mapping[TopicPartition, int]) -> Generator[None, None, list[WritableTxnMarkerTopicResult]]:
    by_topic: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (name, number), error in errors.items():
        by_topic.setdefault(name, []).append(_result(number, error))
        yield
    return (yield from listed(_topic(name, results) for name, results in by_topic.items()))


def _of_marker(marker: WritableTxnMarker, outcome: _Outcome) -> WritableTxnMarkerResult:
    topics = outcome
    if isinstance(topics, int):
        result = partial(_result, code=topics)
        topics = Mapped(lambda topic: _topic(topic.name, Mapped(result, topic.partition_indexes)), marker.topics)
    return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)


def _split(topic: WritableTxnMarkerTopic) -> tuple[str, Sequence[int]]:
    return topic.name, topic.partition_indexes


def _topic(name: str, partitions: Sequence[WritableTxnMarkerPartitionResult]) -> WritableTxnMarkerTopicResult:
    return WritableTxnMarkerTopicResult(name=name, partitions=partitions)


def _result(index: int, code: int) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
