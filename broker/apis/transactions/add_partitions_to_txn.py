"""AddPartitionsToTxn (key 24), served: 0-5.

v0-3 come from clients and add partitions to one transaction: if one of them cannot be added none is. v2:
PRODUCER_FENCED. v4 and later come from brokers: many transactions, and verify_only, which checks and adds nothing
(KIP-890). v5: TRANSACTION_ABORTABLE.

Kafka: KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from array import array
from functools import partial
from operator import index
from typing import TYPE_CHECKING, TypeAlias

from odradek.broker.apis.authorization import EVERYTHING, authorize_cluster, filter_by_authorized, require
from odradek.broker.apis.named_partitions import common_outcome_or_each, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.broker.apis.transactions.fenced_producer import error_for_version
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.topic_names import is_internal
from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.protocol.codec.arrays.mapped import Mapped, Zipped
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
    from collections.abc import Callable, Container, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

_Outcome: TypeAlias = "int | Sequence[AddPartitionsToTxnTopicResult]"
"""Of a transaction: the code of each partition, as often as the request names it, or the topics of the answer."""

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
    authorized: Container[str] = EVERYTHING
    if broker.authorizer is not None:
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
    outcomes: list[_Outcome] = [ErrorCode.NONE] * len(transactions)
    left = len(transactions)

    def finish(number: int, outcome: _Outcome) -> None:
        nonlocal left
        outcomes[number] = outcome
        left -= 1
        if not left:
            respond(_response(transactions, outcomes, version))

    if not left:
        respond(AddPartitionsToTxnResponse())
    for number, transaction in enumerate(transactions):
        yield from _apply_one(broker, transaction, version, authorized, partial(finish, number))
        yield None


def _apply_one(
    broker: Services,
    transaction: AddPartitionsToTxnTransaction,
    version: int,
    authorized: Container[str],
    finish: Callable[[_Outcome], None],
) -> Steps:
    named = yield from named_partitions(Mapped(_split, transaction.topics), index)
    errors = array("h")
    for topic_partition in named:
        errors.append(_refusal(broker, topic_partition, version, authorized))
        yield None
    if any(errors):
        finish(common_outcome_or_each(named, errors, _topic, _refused))
        return
    partitions = yield from listed(named)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    coordinator = broker.transaction_coordinator
    if transaction.verify_only:
        # Kafka: AddPartitionsToTxnResponse.resultForTransaction
        verified = coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        codes = yield from listed(verified[topic_partition] for topic_partition in partitions)
        finish(common_outcome_or_each(named, codes, _topic, _result))
        return

    def added(error: ErrorCode) -> None:
        # Kafka: AddPartitionsToTxnRequest.errorResponseForTransaction
        finish(error_for_version(error, version, FIRST_FENCED_VERSION))

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


def _split(topic: AddPartitionsToTxnTopic) -> tuple[str, Sequence[int]]:
    return topic.name, topic.partitions


def _topic(name: str, partitions: Sequence[AddPartitionsToTxnPartitionResult]) -> AddPartitionsToTxnTopicResult:
    return AddPartitionsToTxnTopicResult(name=name, results_by_partition=partitions)


def _refused(index: int, code: int) -> AddPartitionsToTxnPartitionResult:
    """With a partition that cannot be added: nothing is done with the others."""
    return _result(index, ErrorCode.OPERATION_NOT_ATTEMPTED if code == ErrorCode.NONE else code)


def _result(index: int, code: int) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)


def _topics(transaction: AddPartitionsToTxnTransaction, outcome: _Outcome) -> Sequence[AddPartitionsToTxnTopicResult]:
    if not isinstance(outcome, int):
        return outcome

    def answered(topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        return _topic(topic.name, Mapped(partial(_result, code=outcome), topic.partitions))

    return Mapped(answered, transaction.topics)


def _of_transaction(transaction: AddPartitionsToTxnTransaction, outcome: _Outcome) -> AddPartitionsToTxnResult:
    topics = _topics(transaction, outcome)
    return AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)


def _response(
    transactions: Sequence[AddPartitionsToTxnTransaction], outcomes: Sequence[_Outcome], version: int
) -> AddPartitionsToTxnResponse:
    if version >= FIRST_BATCHED_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=Zipped(_of_transaction, transactions, outcomes))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(transactions[0], outcomes[0]))
