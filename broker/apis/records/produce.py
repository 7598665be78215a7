"""Produce (key 0), served: 0-11.

v0-2 may contain message sets of magic 0 or 1, several batches at once, which are converted on append. v3 on: exactly
one v2 batch a partition. v7: zstd. v8: errors of single records. v10: the current leader with NOT_LEADER_OR_FOLLOWER.
v11: TRANSACTION_ABORTABLE.

acks=0 has no response: an error closes the connection, so that the producer refreshes its metadata.

Kafka: KafkaApis.handleProduceRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import filter_by_authorized, require
from odradek.broker.apis.leaders import name_leader
from odradek.broker.apis.records.refused_partitions import RefusedPartitions
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, SMALL_REQUEST_PARTITIONS, now_or_in_slices
from odradek.broker.quotas.request_throttle import throttle_produce
from odradek.broker.replica_manager.replica_manager import NO_GUARDS
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import InOrder, Mapped, Outcomes
from odradek.protocol.codec.shape import Each, Shape
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import response_frame
from odradek.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.batch import attributes_of_single_batch, size_of_next_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    MAGIC_POSITION,
    MAGIC_V2,
    TRANSACTIONAL_MASK,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import CLIENT
from odradek.timer.sliced_work import chosen, listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.coordinators.transaction_verification import Guards
    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

# The only client that may write internal topics: Kafka's console tools and admin client use this id.
ADMIN_CLIENT_ID = "__admin_client"

NO_RECORDS = memoryview(b"")

Checked: TypeAlias = "tuple[memoryview, bool, ErrorCode]"
"""The records of one partition, whether they are transactional, and their error."""

WITHOUT_ERRORS: Final = Shape(
    ProduceResponse,
    "topics",
    {
        "responses": Each(
            "name, partitions",
            "topics.items()",
            {
                "name": "name",
                "partition_responses": Each(
                    "(_, partition), result",
                    "partitions",
                    {
                        "index": "partition",
                        "base_offset": "result.info.first_offset",
                        "log_append_time_ms": "result.info.log_append_time",
                        "log_start_offset": "result.info.log_start_offset",
                    },
                ),
            },
        )
    },
)
"""The answer when no partition has an error."""

NONE: Final = ErrorCode.NONE
"""To look up a member of an enum takes as long as a call."""

FIRST_V2_ONLY_VERSION = 3
FIRST_ZSTD_VERSION = 7
FIRST_CURRENT_LEADER_VERSION = 10
FIRST_ABORTABLE_VERSION = 11


def handle(broker: Services, ctx: RequestContext, request: ProduceRequest) -> None:
    work = _produce(broker, ctx, request)
    now_or_in_slices(broker, ctx, request, work, is_small=ctx.size <= SMALL_REQUEST_BYTES)


def _produce(broker: Services, ctx: RequestContext, request: ProduceRequest) -> Steps:
    records: dict[TopicPartition, memoryview] = {}
    refused: MutableMapping[TopicPartition, ErrorCode] = {}
    transactional = False
    version = ctx.header.api_version
    named = 0
    for topic in request.topic_data:
        name = topic.name
        known = broker.metadata_cache.snapshot.partitions.get(name, {})
        if not topic.partition_data:
            yield None
        for part in topic.partition_data:
            named += 1
            if named % SMALL_REQUEST_PARTITIONS == 0:
                yield None
            batch: memoryview | bytes | object
            batch, error = part.records, NONE
            if (
                version >= FIRST_ZSTD_VERSION
                and isinstance(batch, memoryview)
                and (attributes := attributes_of_single_batch(batch)) >= 0
            ):  # the frequent case
                is_transactional = attributes & TRANSACTIONAL_MASK != 0
            else:
                if named > 1:
                    yield None
                batch, is_transactional, error = _checked(batch, version, transactional)
            transactional = transactional or is_transactional
            topic_partition = new_tuple(TopicPartition, (name, part.index))
            if part.index in known and not error:
                records[topic_partition] = batch
                continue
            if not refused and ctx.size > SMALL_REQUEST_BYTES:
                refused = RefusedPartitions()
            refused[topic_partition] = error if part.index in known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if transactional:
        _require_transactional_id(broker, ctx, request)
    if broker.authorizer is not None:
        yield from _refuse_unauthorized(broker, ctx, request, records, refused)

    respond = partial(_respond, broker, ctx, request, refused)
    if not records:
        respond({})
    elif transactional and request.transactional_id is not None:
        _append_when_verified(broker, ctx, request, request.transactional_id, records, respond)
    else:
        yield from _append(broker, ctx, request, records, NO_GUARDS, respond)


def _append_when_verified(
    broker: Services,
    ctx: RequestContext,
    request: ProduceRequest,
    transactional_id: str,
    records: Mapping[TopicPartition, memoryview],
    respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
) -> None:
    def append_verified(unverified: Mapping[TopicPartition, LogAppendResult], guards: Guards) -> None:
        verified = {tp: batch for tp, batch in records.items() if tp not in unverified}
        work = _append(broker, ctx, request, verified, guards, lambda results: respond({**unverified, **results}))
        now_or_in_slices(broker, ctx, request, work, is_small=len(records) <= SMALL_REQUEST_PARTITIONS)

    broker.transaction_verification.verify_records(
        transactional_id,
        records,
        append_verified,
        knows_abortable_error=ctx.header.api_version >= FIRST_ABORTABLE_VERSION,
    )


def _require_transactional_id(broker: Services, ctx: RequestContext, request: ProduceRequest) -> None:
    """The batches decide whether this is asked, not the field of the request: else a request could hide the id of its
    transaction, and its records would evade the authorization.
    """
    if request.transactional_id is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)


def _refuse_unauthorized(
    broker: Services,
    ctx: RequestContext,
    request: ProduceRequest,
    records: dict[TopicPartition, memoryview],
    refused: MutableMapping[TopicPartition, ErrorCode],
) -> Steps:
    """Moves the partitions of topics that the client may not write to `refused`, whether they exist or not."""
    names = (topic.name for topic in request.topic_data)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, names)
    for topic_partition in list(records):
        if topic_partition.topic not in authorized:
            del records[topic_partition]
            refused[topic_partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        yield None
    for topic_partition in refused:
        if topic_partition.topic not in authorized:
            refused[topic_partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        yield None


def _append(
    broker: Services,
    ctx: RequestContext,
    request: ProduceRequest,
    records: Mapping[TopicPartition, memoryview],
    guards: Guards,
    respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
) -> Steps:
    yield from broker.replica_manager.append_in_steps(
        timeout_ms=request.timeout_ms,
        required_acks=request.acks,
        internal_topics_allowed=ctx.header.client_id == ADMIN_CLIENT_ID,
        origin=CLIENT,
        records=records,
        verification_guards=guards,
        respond=respond,
    )
    # Appended: the next Produce of this connection may be applied while this one waits for its replicas. Not with a
    # quota, which may mute the connection when this one is answered.
    ctx.may_pipeline = not broker.quotas.produce.is_enabled
    if not ctx.is_answered:
        yield from _clear_partition_records(request)


def _clear_partition_records(request: ProduceRequest) -> Steps:
    """Drop the records of a request that waits. They are appended, and would keep the whole frame in memory.

    A long array is a part of the frame, and goes as a whole. The names that stay are for an error of the answer.

    Kafka: ProduceRequest.clearPartitionRecords.
    """
    if not isinstance(request.topic_data, list):
        request.topic_data = []
    named = 0
    for topic in request.topic_data:
        if not isinstance(topic.partition_data, list):
            topic.partition_data = []
        if not topic.partition_data:
            yield None
        for part in topic.partition_data:
            part.records = None
            named += 1
            if named % SMALL_REQUEST_PARTITIONS == 0:
                yield None


def _checked(records: memoryview | bytes | object, version: int, is_transactional_request: bool) -> Checked:
    """The record data of one partition, whether it is transactional, and its error.

    As in Apache Kafka the header of the first batch decides, and from v3 on that of the next one, if any, is looked at.

    Raises: KafkaError CORRUPT_MESSAGE for a first header of an impossible size or magic, which fails the request as a
    whole; unless batches before it say already that the request is transactional, which is what they are asked first.
    Kafka: RequestUtils.hasTransactionalRecords, ProduceRequest.validateRecords.
    """
    if not isinstance(records, memoryview):
        return NO_RECORDS, False, ErrorCode.INVALID_RECORD
    try:
        size = size_of_next_batch(records)
    except CorruptRecordError as corrupt:
        if not is_transactional_request:
            raise
        return records, False, corrupt.code
    if size is None or size > len(records):
        return records, False, ErrorCode.NONE if version < FIRST_V2_ONLY_VERSION else ErrorCode.INVALID_RECORD
    is_new = records[MAGIC_POSITION] == MAGIC_V2
    attributes = int.from_bytes(records[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2], "big") if is_new else 0
    is_transactional = attributes & TRANSACTIONAL_MASK != 0
    error = ErrorCode.NONE
    if version >= FIRST_V2_ONLY_VERSION:
        if not is_new:
            error = ErrorCode.INVALID_RECORD
        elif version < FIRST_ZSTD_VERSION and attributes & COMPRESSION_MASK == CompressionType.ZSTD:
            error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        else:
            error = _error_of_more(records[size:])
    return records, is_transactional, error


def _error_of_more(rest: memoryview) -> ErrorCode:
    """The error for what follows the one batch that there may be; NONE for less than a batch."""
    try:
        size = size_of_next_batch(rest)
    except CorruptRecordError as corrupt:
        return corrupt.code
    return ErrorCode.NONE if size is None or size > len(rest) else ErrorCode.INVALID_RECORD


def _respond(
    broker: Services,
    ctx: RequestContext,
    request: ProduceRequest,
    refused: Mapping[TopicPartition, ErrorCode],
    results: Mapping[TopicPartition, LogAppendResult],
) -> None:
    is_small = len(results) + len(refused) <= SMALL_REQUEST_PARTITIONS
    is_throttled = broker.quotas.produce.is_enabled
    if is_small and not (refused or is_throttled) and _respond_without_errors(ctx, request.acks, results):
        return
    if request.acks == 0:
        if is_throttled:
            throttle_produce(broker.quotas, ctx, acks=0)
        work = _finish_unacknowledged(ctx, results, refused)
    else:
        if is_small:
            ctx.slices = None  # the frame may be large, the response is short
        work = _respond_in_steps(broker, ctx, results, refused)
    now_or_in_slices(broker, ctx, request, work, is_small=is_small)


def _respond_without_errors(ctx: RequestContext, acks: int, results: Mapping[TopicPartition, LogAppendResult]) -> bool:
    """Answer in the frequent case: no partition has an error, and nobody looks at the response. Else returns False."""
    if acks and not ctx.takes_bytes:
        return False
    is_timed = ctx.times is not None
    topics: dict[str, list[tuple[TopicPartition, LogAppendResult]]] = {}
    for named in results.items():
        topic_partition, result = named
        if result.error or (is_timed and result.info.conversion_ns):  # whose time is taken there
            return False
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topics[topic_partition.topic] = [named]
        else:
            topic.append(named)
    if not acks:
        ctx.reply(None)
        return True
    if ctx.counter is not None:
        ctx.counter.plain += 1
        if len(results) != 1:
            ctx.counter.plain_codes += len(results) - 1
        ctx.counter = None
    header = ctx.header
    version = header.api_version
    encode = WITHOUT_ERRORS.encoders.get(version) or WITHOUT_ERRORS.encoder(version)
    pieces: list[bytes] = []
    encode(topics, pieces)
    ctx.reply_bytes(response_frame(header.api_key, version, header.correlation_id, pieces))
    return True


def _finish_unacknowledged(
    ctx: RequestContext, results: Mapping[TopicPartition, LogAppendResult], refused: Mapping[TopicPartition, ErrorCode]
) -> Steps:
    failed = yield from chosen(results, lambda found: results[found].error and found not in refused)
    if not (failed or refused):
        ctx.reply(None)
        return

    def answer(found: TopicPartition) -> TopicProduceResponse:
        error = refused[found] if found in refused else results[found].error
        return TopicProduceResponse(name=found.topic, partition_responses=[_refusal(found.partition, error)])

    ctx.close_connection(ProduceResponse(responses=Mapped(answer, InOrder(failed, refused))))


def _respond_in_steps(
    broker: Services,
    ctx: RequestContext,
    results: Mapping[TopicPartition, LogAppendResult],
    refused: Mapping[TopicPartition, ErrorCode],
) -> Steps:
    """One result a partition, also if the request names it twice."""
    names_leaders = ctx.header.api_version >= FIRST_CURRENT_LEADER_VERSION
    endpoints: dict[int, NodeEndpoint] = {}
    topics: dict[str, Outcomes[int, PartitionProduceResponse]] = {}
    has_errors = bool(refused)
    for named, (topic_partition, result) in enumerate(results.items(), 1):
        if topic_partition in refused:
            continue  # named twice
        if named % SMALL_REQUEST_PARTITIONS == 0:
            yield None
        info = result.info
        answer = PartitionProduceResponse()
        answer.index = topic_partition.partition
        answer.error_code = result.error
        answer.base_offset = info.first_offset
        answer.log_append_time_ms = info.log_append_time
        answer.log_start_offset = info.log_start_offset
        answer.error_message = result.error_message
        if info.conversion_ns and ctx.times is not None:
            ctx.times.message_conversions_ns += info.conversion_ns
            ctx.times.temporary_bytes += info.temporary_bytes
        if result.error:
            has_errors = True
        if result.record_errors:
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in result.record_errors
            ]
        if names_leaders and result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            name_leader(broker, ctx, topic_partition, answer.current_leader, endpoints, NodeEndpoint)
        if topic_partition.topic not in topics:
            topics[topic_partition.topic] = Outcomes(_refusal)
        topics[topic_partition.topic].append(answer)
    if ctx.counter is not None and not has_errors:
        ctx.counter.plain += 1
        ctx.counter.plain_codes += len(results) - 1
        ctx.counter = None
    for named, (topic_partition, error) in enumerate(refused.items(), 1):
        if topic_partition.topic not in topics:
            topics[topic_partition.topic] = Outcomes(_refusal)
        topics[topic_partition.topic].add(topic_partition.partition, error)
        if named % SMALL_REQUEST_PARTITIONS == 0:
            yield None
    if len(topics) <= SMALL_REQUEST_PARTITIONS:
        responses = [TopicProduceResponse(name=name, partition_responses=found) for name, found in topics.items()]
    else:
        responses = yield from listed(
            TopicProduceResponse(name=name, partition_responses=found) for name, found in topics.items()
        )
    ctx.reply(
        ProduceResponse(
            responses=responses,
            throttle_time_ms=throttle_produce(broker.quotas, ctx, acks=-1) if broker.quotas.produce.is_enabled else 0,
            node_endpoints=list(endpoints.values()),
        )
    )


def _refusal(index: int, code: int, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=-1, error_message=message
    )


def error_response(
    request: ProduceRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, ProduceResponse | None]:
    """The same error for every partition; None with acks=0, which has no response."""
    if request.acks == 0:
        return None
    topics: dict[str, dict[int, PartitionProduceResponse]] = {}
    for topic in request.topic_data:
        yield
        for part in topic.partition_data:
            topics.setdefault(topic.name, {})[part.index] = _refusal(part.index, code, message)
            yield
    responses = yield from listed(
        TopicProduceResponse(name=name, partition_responses=list(found.values())) for name, found in topics.items()
    )
    return ProduceResponse(responses=responses)
