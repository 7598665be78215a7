"""WriteTxnMarkers (key 27), served: 0-1.

Writes markers to partitions that this broker leads, for a transaction coordinator or for an administrator who ends a
hanging transaction. v1: flexible encoding. When a partition of `__consumer_offsets` has its marker, the offsets of the
transaction are committed or dropped.

Kafka: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import authorize, authorize_cluster
from odradek.broker.apis.named_partitions import named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC
from odradek.protocol.codec.outcomes_by_topic import OutcomesByTopic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.layout import MAGIC_V2
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

_Results: TypeAlias = OutcomesByTopic[WritableTxnMarkerPartitionResult, WritableTxnMarkerTopicResult]
"""Of one marker."""


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
    results: dict[int, list[_Results]] = {}
    left = len(request.markers)

    def finish(producer_id: int, found: _Results) -> None:
        nonlocal left
        results.setdefault(producer_id, []).append(found)
        left -= 1
        if not left:
            broker.slices.submit(_respond(results, respond))

    if not left:
        respond(WriteTxnMarkersResponse())
    for marker in request.markers:
        yield from _write(broker, marker, finish)
        yield None


def _write(broker: Services, marker: WritableTxnMarker, finish: Callable[[int, _Results], None]) -> Steps:
    replicas = broker.replica_manager
    if not marker.topics:
        finish(marker.producer_id, _NOTHING)
        return
    found = OutcomesByTopic(_topic, _result)
    batch = _batch(broker, marker)
    records: dict[TopicPartition, memoryview] = {}
    for topic_partition in (yield from named_partitions((t.name, t.partition_indexes) for t in marker.topics)):
        partition = replicas.hosted(topic_partition)
        if partition is None or partition.log is None:
            found.add(*topic_partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif partition.log.config.record_version < MAGIC_V2:
            found.add(*topic_partition, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
        else:
            records[topic_partition] = memoryview(bytearray(batch))
        yield None
    if not records:
        finish(marker.producer_id, found)
        return

    def written(results: Mapping[TopicPartition, LogAppendResult]) -> None:
        for topic_partition, result in results.items():
            found.add(*topic_partition, result.error)
        _complete_offsets(broker, marker, results)
        finish(marker.producer_id, found)

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
    results_by_producer: Mapping[int, list[_Results]], respond: Callable[[WriteTxnMarkersResponse], None]
) -> Steps:
    markers = []
    for producer_id, found in results_by_producer.items():
        topics = found[0] if len(found) == 1 else (yield from _together(found))
        markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
        yield None
    respond(WriteTxnMarkersResponse(markers=markers))


def _together(found: Iterable[_Results]) -> Generator[None, None, _Results]:
    """The results of several markers of one producer: of a partition that is in more than one, the last one counts."""
    errors: dict[TopicPartition, int] = {}
    for results in found:
        yield
        for topic in results:
            for result in topic.partitions:
                errors[TopicPartition(topic.name, result.partition_index)] = result.error_code
                yield
    topics = OutcomesByTopic(_topic, _result)
    for topic_partition, error in errors.items():
        topics.add(*topic_partition, error)
        yield
    return topics


def _topic(name: str, partitions: Sequence[WritableTxnMarkerPartitionResult]) -> WritableTxnMarkerTopicResult:
    return WritableTxnMarkerTopicResult(name=name, partitions=partitions)


def _result(index: int, code: int) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)


_NOTHING: Final = OutcomesByTopic(_topic, _result)
"""Of markers without partitions, of which 1 MB may have 60,000."""
