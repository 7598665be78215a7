"""AddPartitionsToTxn (key 24), served: 0-5.

v0-3 come from clients and add partitions to one transaction: if one of them cannot be added none is. v2:
PRODUCER_FENCED. v4 and later come from brokers: many transactions, and verify_only, which checks and adds nothing
(KIP-890). v5: TRANSACTION_ABORTABLE.

Kafka: KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import EVERYTHING, authorize_cluster, filter_by_authorized, require
from odradek.broker.apis.named_partitions import named_partitions
from odradek.broker.apis.services import in_slices
from odradek.broker.apis.transactions.fenced_producer import error_for_version
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.topic_names import is_internal
from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.protocol.codec.mapped import Mapped
from odradek.protocol.codec.outcomes_by_topic import OutcomesByTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import chosen, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FIRST_BATCHED_VERSION = 4
FIRST_FENCED_VERSION = 2


@in_slices
def handle(broker: Services, ctx: RequestContext, request: AddPartitionsToTxnRequest) -> Steps:
    version = ctx.header.api_version
    if version >= FIRST_BATCHED_VERSION:
        authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
        yield from apply(broker, request, version, ctx.reply)
        return
    transactional_id = request.v3_and_below_transactional_id
    require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    topics = yield from chosen(request.v3_and_below_topics, lambda topic: not is_internal(topic.name))
    names = (topic.name for topic in topics for _ in topic.partitions)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, names)
    yield from apply(broker, request, version, ctx.reply, authorized)


def apply(
    broker: Services,
    request: AddPartitionsToTxnRequest,
    version: int,
    respond: Callable[[AddPartitionsToTxnResponse], None],
    authorized: Container[str] = EVERYTHING,
) -> Steps:
    """Add or verify, a partition a step; `respond` is called when all transactions of the request are answered.

    `authorized`: the topics that the client may write.
    """
    transactions = request.transactions if version >= FIRST_BATCHED_VERSION else [_only_transaction(request)]
    results: list[AddPartitionsToTxnResult] = []

    def finish(result: AddPartitionsToTxnResult) -> None:
        results.append(result)
        if len(results) == len(transactions):
            respond(_response(results, version))

    if not transactions:
        respond(_response(results, version))
    for transaction in transactions:
        yield from _apply_one(broker, transaction, version, authorized, finish)
        yield None


def _apply_one(
    broker: Services,
    transaction: AddPartitionsToTxnTransaction,
    version: int,
    authorized: Container[str],
    finish: Callable[[AddPartitionsToTxnResult], None],
) -> Steps:
    named = yield from named_partitions((topic.name, topic.partitions) for topic in transaction.topics)
    topics = OutcomesByTopic(_topic, _refused)
    """Those of the answer if any partition cannot be added."""
    is_any_refused = False
    for topic_partition in named:
        error = _refusal(broker, topic_partition, version, authorized)
        is_any_refused = is_any_refused or error != ErrorCode.NONE
        topics.add(*topic_partition, error)
        yield None
    if is_any_refused:
        finish(AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics))
        return
    partitions = yield from listed(named)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    coordinator = broker.transaction_coordinator
    if transaction.verify_only:
        verified = coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        yield from _finish_each(transaction, verified, finish)
        return

    def added(error: ErrorCode) -> None:
        code = error_for_version(error, version, FIRST_FENCED_VERSION)
        broker.slices.submit(_finish(transaction, code, finish))

    coordinator.add_partitions(transaction.transactional_id, producer, partitions, added)


def _refusal(broker: Services, topic_partition: TopicPartition, version: int, authorized: Container[str]) -> ErrorCode:
    """Why a partition cannot be added. Offsets are added by AddOffsetsToTxn: clients may not name internal topics."""
    is_hidden = version < FIRST_BATCHED_VERSION and is_internal(topic_partition.topic)
    if is_hidden or topic_partition.topic not in authorized:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = broker.metadata_cache.contains_partition(*topic_partition)
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _only_transaction(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _topic(name: str, partitions: Sequence[AddPartitionsToTxnPartitionResult]) -> AddPartitionsToTxnTopicResult:
    return AddPartitionsToTxnTopicResult(name=name, results_by_partition=partitions)


def _refused(index: int, code: int) -> AddPartitionsToTxnPartitionResult:
    """With a partition that cannot be added: nothing is done with the others."""
    return _result(index, ErrorCode.OPERATION_NOT_ATTEMPTED if code == ErrorCode.NONE else code)


def _result(index: int, code: int) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)


def _finish_each(
    transaction: AddPartitionsToTxnTransaction,
    errors: Mapping[TopicPartition, ErrorCode],
    finish: Callable[[AddPartitionsToTxnResult], None],
) -> Steps:
    """An error for each partition: one that the request names twice is answered once.

    Kafka: AddPartitionsToTxnResponse.resultForTransaction.
    """
    topics = OutcomesByTopic(_topic, _result)
    for topic_partition, error in errors.items():
        topics.add(*topic_partition, error)
        yield None
    finish(AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics))


def _finish(
    transaction: AddPartitionsToTxnTransaction, error: ErrorCode, finish: Callable[[AddPartitionsToTxnResult], None]
) -> Steps:
    """The same error for all partitions, as often as the request names them.

    Kafka: AddPartitionsToTxnRequest.errorResponseForTransaction.
    """
    yield None

    def answer(topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        results = Mapped(partial(_result, code=error), topic.partitions)
        return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)

    topics = Mapped(answer, transaction.topics) if transaction.topics else ()
    finish(AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics))


def _response(results: list[AddPartitionsToTxnResult], version: int) -> AddPartitionsToTxnResponse:
    if version >= FIRST_BATCHED_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    (only,) = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)
