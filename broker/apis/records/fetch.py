"""Fetch (key 1), served: 0-17.

v0-1 and v2-3 get records down-converted to magic 0 and 1. v3: a limit for the whole response, which its first batch may
exceed. v4: isolation level and aborted transactions. v5: log start offset. v7: sessions (KIP-227). v9: the reader's
leader epoch. v10: zstd. v11: consumers may read from followers and get a preferred replica (KIP-392). v12: diverging
epochs. v13: topic ids. v15: the replica in a tagged struct. v16: the current leader with its address.

The records of a response are a region of the log file, which the connection passes to the kernel.

Kafka: KafkaApis.handleFetchRequest.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import EVERYTHING, authorize, filter_by_authorized
from odradek.broker.apis.leaders import name_leader
from odradek.broker.apis.records.isolation import READ_UNCOMMITTED, require_isolation_level
from odradek.broker.apis.records.sent_records import account
from odradek.broker.apis.services import SMALL_REQUEST_PARTITIONS, now_or_in_slices
from odradek.broker.fetch.fetch_context import (
    NO_EPOCH,
    NO_LEADER,
    NO_SNAPSHOT,
    AskedBy,
    FetchContext,
    new_context,
)
from odradek.broker.fetch.fetch_session import PARTITIONS_A_STEP, Answers, PartitionFetch, Refusals
from odradek.broker.fetch.lazy_down_conversion import LazyDownConversionRecords, convert_firsts
from odradek.broker.fetch.replica_selector import ClientMetadata
from odradek.broker.fetch.results import FetchParams, LogReadResult
from odradek.broker.quotas.request_throttle import throttle_fetch
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Zipped
from odradek.protocol.codec.codec import encode_parts_in_steps, size_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.protocol.records.layout import MAGIC_V0, MAGIC_V1
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from odradek.timer.sliced_work import Wait, listed, run_through

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FUTURE_REPLICA_ID = -3

INT32_SIZE = 4

NO_PARTITIONS: Final[Set[PartitionFetch]] = frozenset()

LAST_MAGIC_0_VERSION = 1
FIRST_V2_BATCH_VERSION = 4
FIRST_ZSTD_VERSION = 10


def handle(broker: Services, ctx: RequestContext, request: FetchRequest) -> None:
    version = ctx.header.api_version
    asked_by = AskedBy.of(request, version)
    if ctx.counter is not None and asked_by.is_follower:
        ctx.counter = ctx.counter.of_followers()
    making = new_context(
        broker.fetch_sessions,
        request,
        version,
        broker.metadata_cache.topic_name,
        asked_by=asked_by,
        now_ms=ctx.received_ms,
    )
    if ctx.slices is not None:
        broker.in_slices(ctx, request, _fetch_in_slices(broker, ctx, request, making, asked_by))
        return
    context = run_through(making)
    work = _fetch(broker, ctx, request, context, asked_by)
    now_or_in_slices(broker, ctx, request, work, is_small=len(context.partitions) <= SMALL_REQUEST_PARTITIONS)


def _fetch_in_slices(
    broker: Services,
    ctx: RequestContext,
    request: FetchRequest,
    making: Generator[None, None, FetchContext],
    asked_by: AskedBy,
) -> Steps:
    context = yield from making
    yield from _fetch(broker, ctx, request, context, asked_by)


def _fetch(
    broker: Services, ctx: RequestContext, request: FetchRequest, context: FetchContext, asked_by: AskedBy
) -> Steps:
    version = ctx.header.api_version
    replica_id = asked_by.replica_id
    may_read: Container[str] | None = EVERYTHING
    if broker.authorizer is not None:
        may_read = yield from _authorized_topics(broker, ctx, context, asked_by)
    interesting, refusals = yield from _sorted_out(broker, context, may_read, asked_by)
    if not (interesting or (context.has_resting and may_read is not None)):
        yield from _respond(broker, ctx, context, (), refusals, replica_id)
        return
    params, reads = _params(broker, ctx, request, asked_by), broker.replica_manager.reads
    refused = {fetch for fetch, _ in refusals} if refusals else NO_PARTITIONS

    def answer(results: Sequence[LogReadResult]) -> Steps:
        is_sent = yield from _respond(broker, ctx, context, results, refusals, replica_id)
        # In older versions the topic's config can be an error. With an authorizer each fetch of a consumer asks for
        # all topics, so no partition may rest: rights may be taken away meanwhile.
        may_rest = version >= FIRST_ZSTD_VERSION and (broker.authorizer is None or asked_by.is_follower)
        if is_sent and may_rest and context.may_have_session:
            yield from reads.let_rest(params, results)

    def answer_later(results: Sequence[LogReadResult]) -> None:
        now_or_in_slices(broker, ctx, request, answer(results), is_small=len(results) <= SMALL_REQUEST_PARTITIONS)

    def read() -> Steps:
        results = yield from reads.fetch(params, interesting, answer_later, context.session, refused)
        if results is not None:
            yield from answer(results)

    def go_on() -> None:
        if ctx.work is not None:
            ctx.work.end()
        now_or_in_slices(broker, ctx, request, read(), is_small=len(interesting) <= SMALL_REQUEST_PARTITIONS)

    for first in range(0, len(interesting) - SMALL_REQUEST_PARTITIONS, SMALL_REQUEST_PARTITIONS):
        yield Wait(partial(reads.cold_reads.warm, interesting[first : first + SMALL_REQUEST_PARTITIONS]))
    read_ahead = reads.cold_reads.needed(interesting[-SMALL_REQUEST_PARTITIONS:])
    if read_ahead is None:
        yield from read()
    else:
        if ctx.work is not None:
            ctx.work.begin()
        read_ahead(go_on)


def _sorted_out(
    broker: Services, context: FetchContext, may_read: Container[str] | None, asked_by: AskedBy
) -> Generator[None, None, tuple[list[PartitionFetch], Refusals]]:
    """The partitions that are read, and those that are not."""
    interesting: list[PartitionFetch] = []
    refused: list[PartitionFetch] = []
    errors: list[ErrorCode] = []
    for number, fetch in enumerate(context.partitions, 1):
        if number % PARTITIONS_A_STEP == 0:
            yield None
        topic = fetch.topic
        if may_read is None:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif may_read is not EVERYTHING and topic not in may_read:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif fetch.partition not in broker.metadata_cache.snapshot.partitions.get(topic, ()):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            interesting.append(fetch)
            continue
        refused.append(fetch)
        errors.append(error)
    refusals: Refusals = Zipped(_refused, refused, errors) if refused else ()
    if ErrorCode.UNKNOWN_TOPIC_ID in errors and not asked_by.is_follower:
        # Apache Kafka's order of errors in an answer to a consumer
        refusals = sorted(refusals, key=lambda found: found[1] != ErrorCode.UNKNOWN_TOPIC_ID)
    return interesting, refusals


def _refused(fetch: PartitionFetch, error: ErrorCode) -> tuple[PartitionFetch, ErrorCode]:
    return fetch, error


def _authorized_topics(
    broker: Services, ctx: RequestContext, context: FetchContext, asked_by: AskedBy
) -> Generator[None, None, Container[str] | None]:
    """The topics of the fetch that the client may read. None: it calls itself a follower and is no broker."""
    if asked_by.is_follower:
        may_replicate = authorize(broker, ctx, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        return EVERYTHING if may_replicate else None
    topics = (fetch.topic for fetch in context.partitions if fetch.topic is not None)
    return (yield from filter_by_authorized(broker, ctx, AclOperation.READ, ResourceType.TOPIC, topics))


def _params(broker: Services, ctx: RequestContext, request: FetchRequest, asked_by: AskedBy) -> FetchParams:
    """Raises: KafkaError UNKNOWN_SERVER_ERROR for an unknown isolation level."""
    version, replica_id = ctx.header.api_version, asked_by.replica_id
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    if broker.quotas.fetch.is_enabled and not asked_by.is_follower:
        # More would be throttled in any case, and the consumer would never get it.
        limit = broker.quotas.fetch.max_value_in_quota_window(ctx.connection.principal, ctx.header.client_id)
        max_bytes = max_bytes if limit is None else int(min(max_bytes, limit))
    if replica_id >= 0 or replica_id == FUTURE_REPLICA_ID:
        isolation = FetchIsolation.LOG_END
    elif request.isolation_level == READ_UNCOMMITTED:
        isolation = FetchIsolation.HIGH_WATERMARK
    else:
        require_isolation_level(request.isolation_level)
        isolation = FetchIsolation.TXN_COMMITTED
    client = None
    if version >= 11 and broker.replica_manager.reads.selector is not None:
        client = ClientMetadata(request.rack_id, ctx.connection.listener_name)
    return FetchParams(
        replica_id=replica_id,
        replica_epoch=asked_by.replica_epoch,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        # Consumers may read from followers since v11 (KIP-392).
        leader_only=replica_id >= 0 or (version < 11 and replica_id != FUTURE_REPLICA_ID),
        hard_max_bytes=version <= 2,
        client=client,
    )


def _unconvertible(fetch: PartitionFetch, code: ErrorCode) -> PartitionData:
    """The answer for a topic whose records the version cannot contain. Kafka: FetchResponse.partitionResponse."""
    return PartitionData(partition_index=fetch.partition, error_code=code, high_watermark=-1, records=None)


def _respond(
    broker: Services,
    ctx: RequestContext,
    context: FetchContext,
    results: Sequence[LogReadResult],
    refused: Refusals,
    replica_id: int,
) -> Generator[Wait | None, None, bool]:
    """Returns whether the response has the results; that of a throttled consumer is empty."""
    version, is_follower = ctx.header.api_version, replica_id >= 0
    endpoints: dict[int, NodeEndpoint] = {}
    answers = []
    omits_sent = context.session is not None and version >= FIRST_ZSTD_VERSION
    to_convert: list[tuple[PartitionData, LazyDownConversionRecords]] = []
    for number, result in enumerate(results, 1):
        if number % PARTITIONS_A_STEP == 0:
            yield None
        if omits_sent and not result.size_in_bytes and result.is_sent:
            continue  # after the first response only partitions that have changed
        data = _partition_data(broker, ctx, result, version, is_follower, to_convert)
        if version >= 16 and result.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            topic_partition = TopicPartition(result.fetch.topic or "", result.fetch.partition)
            data.current_leader = LeaderIdAndEpoch()
            name_leader(broker, ctx, topic_partition, data.current_leader, endpoints, NodeEndpoint)
        answers.append((result.fetch, data))
    if broker.quotas.fetch.is_enabled and not is_follower:
        throttle_ms = throttle_fetch(
            broker.quotas, ctx, (yield from _response_size(context, answers, refused, version))
        )
        if throttle_ms:
            ctx.reply(context.throttled(throttle_ms))
            return False
    # Only a new session needs the time of its answer.
    now_ms = ctx.received_ms if context.session is not None else broker.clock.monotonic_ms()
    response = yield from context.respond(answers, now_ms, refused)
    response.node_endpoints = list(endpoints.values())
    stats = broker.replica_manager.partitions.topic_stats
    if is_follower or stats is not None:
        counted = None if to_convert else () if refused else answers
        work = account(broker, ctx, response, replica_id, stats, counted)
        if work is not None:
            yield from work
    if to_convert:
        _reply_converted(broker, ctx, response, to_convert)
    else:
        ctx.reply(response)
    return True


def _reply_converted(
    broker: Services,
    ctx: RequestContext,
    response: FetchResponse,
    to_convert: Sequence[tuple[PartitionData, LazyDownConversionRecords]],
) -> None:
    """Reply when the first of the records of each partition are converted."""

    def converted(errors: Sequence[ErrorCode]) -> None:
        for (data, records), error in zip(to_convert, errors, strict=True):
            if error != ErrorCode.NONE:
                data.error_code = _for_version(error, ctx.header.api_version)
                data.high_watermark, data.records = -1, None
            else:
                data.records = records
        try:
            ctx.reply(response)
        finally:
            for (_, records), error in zip(to_convert, errors, strict=True):
                if error == ErrorCode.NONE:
                    records.release()  # the sender has retained the records that it sends

    convert_firsts([records for _, records in to_convert], broker.io_pool, converted)


def _response_size(
    context: FetchContext, answers: Answers, refused: Refusals, version: int
) -> Generator[None, None, int]:
    """The bytes of the response with its length, before conversions. Kafka: FetchResponse.sizeOf."""
    preview = yield from context.preview(answers, refused)
    return INT32_SIZE + size_of((yield from encode_parts_in_steps(preview, version)))


def _partition_data(
    broker: Services,
    ctx: RequestContext,
    result: LogReadResult,
    version: int,
    is_follower: bool,
    to_convert: list[tuple[PartitionData, LazyDownConversionRecords]],
) -> PartitionData:
    error = result.error
    data = PartitionData(
        partition_index=result.fetch.partition,
        error_code=error if error == ErrorCode.NONE else _for_version(error, version),
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        diverging_epoch=NO_EPOCH,
        current_leader=NO_LEADER,
        snapshot_id=NO_SNAPSHOT,
        records=b"",
        aborted_transactions=None,
        preferred_read_replica=result.preferred_read_replica,
    )
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    fetched = result.fetched
    if fetched is not None:
        data.records = fetched.records
        if fetched.aborted_transactions is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in fetched.aborted_transactions
            ]
    if version < FIRST_ZSTD_VERSION:
        return _for_old_version(broker, ctx, result, data, version, is_follower, to_convert)
    return data


def _for_version(error: ErrorCode, version: int) -> ErrorCode:
    if error == ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER  # older clients do not know the storage error and would not retry
    return error


def _for_old_version(
    broker: Services,
    ctx: RequestContext,
    result: LogReadResult,
    data: PartitionData,
    version: int,
    is_follower: bool,
    to_convert: list[tuple[PartitionData, LazyDownConversionRecords]],
) -> PartitionData:
    """The result for versions below 10: no zstd topics, and below 4 no v2 batches (conversions go to `to_convert`).

    A topic whose records the version cannot contain is refused even if no records were found, as in Apache Kafka.
    """
    fetch = result.fetch
    hosted = broker.replica_manager.hosted(TopicPartition(fetch.topic or "", fetch.partition))
    if hosted is None or hosted.log is None:
        return data
    config = hosted.log.config
    if config.compression_type == "zstd":
        return _unconvertible(fetch, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    magic = _down_conversion_magic(config.record_version, version)
    if magic is None:
        return data
    if not (is_follower or config.message_downconversion_enable):
        return _unconvertible(fetch, ErrorCode.UNSUPPORTED_VERSION)
    if not result.size_in_bytes:
        return data
    region = data.records
    assert isinstance(region, FileRegion), "records that were found are in a file"
    stats, times = broker.replica_manager.partitions.topic_stats, ctx.times

    def count(converted: int, conversion_ns: int, temporary_bytes: int) -> None:
        if stats is not None and fetch.topic is not None:
            stats.converted_fetched(fetch.topic, converted)
        if times is not None:
            times.message_conversions_ns += conversion_ns
            times.temporary_bytes += temporary_bytes

    records = LazyDownConversionRecords(
        region, magic, fetch.fetch_offset, broker.down_converter, broker.io_pool, count, ctx.work
    )
    to_convert.append((data, records))
    return data


def _down_conversion_magic(record_version: int, version: int) -> int | None:
    """The magic to convert to, by the format that the topic is written in; None if the records are sent unchanged.

    As in Apache Kafka an `inter.broker.protocol.version` below 3.0 may lower that format; records that were written
    before are not converted then.
    """
    if record_version > MAGIC_V0 and version <= LAST_MAGIC_0_VERSION:
        return MAGIC_V0
    return MAGIC_V1 if record_version > MAGIC_V1 and version < FIRST_V2_BATCH_VERSION else None


def error_response(
    request: FetchRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, FetchResponse]:
    """The error at the top level, and below v13 also for every partition: v0-6 have no top-level error."""
    response = FetchResponse(error_code=code, session_id=request.session_id)
    if version >= 13:
        return response
    for topic in request.topics:
        partitions = yield from listed(
            PartitionData(partition_index=part.partition, error_code=code, high_watermark=-1, records=None)
            for part in topic.partitions
        )
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
        )
        yield
    return response
