"""LeaderAndIsr (key 4), served: 0-7.

The controller tells this broker which partitions it leads and follows. v1: is_new. v2: grouped by topic, the broker
epoch. v3: replicas being added and removed. v5: topic ids, errors by topic id. v7: the controller's kind and the
request's type.

The response waits until created logs are durable. It does not wait for the leader epochs of logs that exist: the
controller sends nothing else until it has the response, and a log that loses the newest epoch finds it in its records.

Kafka: KafkaApis.handleLeaderAndIsrRequest, RequestHandlerHelper.onLeadershipChange.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.broker.apis.cluster.broker_epoch import is_stale
from odradek.broker.apis.cluster.coordinators import coordinator_of
from odradek.broker.replica_manager.leader_and_isr_states import partition_states
from odradek.controller.loop_turns import in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation
from odradek.controller.model.topic_names import TRANSACTION_STATE_TOPIC, is_valid_topic_name
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.partition.partition import Partition

state_change_log = logging.getLogger("odradek.state.change")

FIRST_TOPIC_ID_VERSION = 5

SLICE = 16
"""Most partitions that are prepared together, and applied before the event loop runs other callbacks."""


def handle(broker: Services, ctx: RequestContext, request: LeaderAndIsrRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    broker.spawn(ctx, request, apply(broker, request, ctx.header.api_version, ctx.reply))


async def apply(
    broker: Services,
    request: LeaderAndIsrRequest,
    version: int,
    respond: Callable[[LeaderAndIsrResponse], None],
) -> None:
    """Apply the states of the partitions; `respond` is called once created logs are durable.

    The I/O pool makes the files of new logs before the states are applied. The loop runs other callbacks after `SLICE`
    partitions, or `SLICE_MS`. The controller epoch is checked for each partition, and for a request without any.
    """
    errors: dict[TopicPartition, ErrorCode] = {}
    async with broker.replica_manager.controller_requests.replica_state_change_lock:
        new_topics, is_elected = await _needed_from_the_tree(broker, request)
        await _apply_configs(broker, new_topics)
        if is_elected:
            await _read_transaction_partitions(broker)
        if is_stale(broker, request.broker_epoch):
            respond(await result_in_turns(error_response(request, version, ErrorCode.STALE_BROKER_EPOCH, None)))
            return
        begun_ms = broker.clock.monotonic_ms()
        states = partition_states(request)
        some = list(islice(states, SLICE))
        while True:
            refusal = await _become(broker, request.controller_epoch, some, errors)
            if refusal is not None:
                respond(await result_in_turns(error_response(request, version, refusal, None)))
                return
            if not (some := list(islice(states, SLICE))):
                break
        broker.log_manager.forget_configs_without_logs()

    state_change_log.info(
        "[Broker id=%d] Finished LeaderAndIsr request in %dms from controller %d for %d partitions",
        broker.broker_id,
        broker.clock.monotonic_ms() - begun_ms,
        request.controller_id,
        len(errors),
    )
    broker.replica_manager.high_watermark_checkpoints.begin()  # now that every partition is known

    response, answers = await _response(request, version, errors)

    def durable(failure: OSError | None) -> None:
        if failure is not None:
            for topic_partition, answer in answers.items():
                if broker.replica_manager.partitions.is_offline(topic_partition):
                    answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        respond(response)

    if new_topics:
        broker.log_manager.when_durable(durable)
    else:
        durable(None)


async def _become(
    broker: Services,
    controller_epoch: int,
    states: Sequence[tuple[str, bytes | None, LeaderAndIsrPartitionState]],
    errors: dict[TopicPartition, ErrorCode],
) -> ErrorCode | None:
    """Apply some states, and add their errors to `errors`; the error that refuses the request, if there is one."""
    requests = broker.replica_manager.controller_requests
    await _called_back(partial(requests.prepare_logs, controller_epoch, states))
    refusal = None
    try:
        async for one in in_turns([[state] for state in states] or [[]], SLICE):
            errors |= requests.become_leader_or_follower(controller_epoch, one, partial(_move_coordinators, broker))
    except KafkaError as error:
        refusal = error.code
    await _called_back(partial(requests.discard_prepared_logs, states))
    return refusal


async def _called_back(begin: Callable[[Callable[[], None]], None]) -> None:
    """Wait until `begin` calls its argument. It may do so at once: then the loop does not turn."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not over.done():
            over.set_result(None)

    begin(done)
    await over


async def _needed_from_the_tree(broker: Services, request: LeaderAndIsrRequest) -> tuple[list[str], bool]:
    """The topics with a partition that has no log here, and whether this broker becomes the leader of a partition of
    `__transaction_state`.
    """
    found: set[str] = set()
    is_elected = False
    async for topic, _, state in in_turns(partition_states(request)):
        if topic == TRANSACTION_STATE_TOPIC and state.leader == broker.broker_id:
            hosted = broker.replica_manager.hosted(TopicPartition(topic, state.partition_index))
            is_elected = is_elected or hosted is None or not hosted.is_leader
        if topic in found or not is_valid_topic_name(topic):
            continue
        topic_partition = TopicPartition(topic, state.partition_index)
        is_offline = broker.replica_manager.partitions.is_offline(topic_partition)
        if broker.log_manager.get_log(topic_partition) is None and not is_offline:
            found.add(topic)
    return sorted(found), is_elected


async def _apply_configs(broker: Services, topics: Sequence[str]) -> None:
    """Read and apply the configs of topics that are new to this broker.

    There is no notification of the configs that a topic is created with. What a notification has changed since the
    read began stays: it may be newer than what was read.

    Raises: KafkaError UNKNOWN_SERVER_ERROR if a config has a value that is no string: no log is created with the
    defaults in its place, which could delete records.
    """
    with broker.log_manager.topic_configs_updated_meanwhile() as updated:
        try:
            of_topics = await broker.topic_overrides(topics)
        except BadZnode as error:
            state_change_log.error("LeaderAndIsr is refused: %s", error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        async for topic, overrides in in_turns(of_topics.items(), SLICE):
            if topic not in updated:
                broker.log_manager.update_topic_config(topic, overrides)


async def _read_transaction_partitions(broker: Services) -> None:
    """Tell the transaction coordinator, before it is elected, how many partitions its topic has.

    Kafka reads the number again for each partition that it loads. Where it cannot be read now, the last one holds: no
    partition waits for a connection to ZooKeeper.
    """
    if broker.controller.client.tree.is_disconnected:
        return
    try:
        counts = await broker.topic_partition_counts({TRANSACTION_STATE_TOPIC})
    except (BadZnode, TreeError) as error:
        state_change_log.error("Cannot read the number of partitions of %s: %r", TRANSACTION_STATE_TOPIC, error)
    else:
        broker.transaction_coordinator.topic_partition_count_read(counts.get(TRANSACTION_STATE_TOPIC))


def _move_coordinators(broker: Services, leaders: Sequence[Partition], followers: Sequence[Partition]) -> None:
    """Load or unload the coordinators of the partitions. The leader epoch is the coordinator epoch."""
    for partition in leaders:
        if (coordinator := coordinator_of(broker, partition.topic_partition)) is not None:
            coordinator.on_elected(partition.topic_partition.partition, partition.leader_epoch)
    for partition in followers:
        if (coordinator := coordinator_of(broker, partition.topic_partition)) is not None:
            coordinator.on_resigned(partition.topic_partition.partition, partition.leader_epoch)


async def _response(
    request: LeaderAndIsrRequest, version: int, errors: Mapping[TopicPartition, ErrorCode]
) -> tuple[LeaderAndIsrResponse, dict[TopicPartition, LeaderAndIsrPartitionError]]:
    """The response, and what it says of each partition."""
    answers: dict[TopicPartition, LeaderAndIsrPartitionError] = {}
    if version < FIRST_TOPIC_ID_VERSION:
        async for tp, error in in_turns(errors.items(), SLICE):
            answers[tp] = LeaderAndIsrPartitionError(
                topic_name=tp.topic, partition_index=tp.partition, error_code=error
            )
        return LeaderAndIsrResponse(partition_errors=list(answers.values())), answers
    topic_ids = {topic.topic_name: topic.topic_id for topic in request.topic_states}
    by_id: dict[bytes, list[LeaderAndIsrPartitionError]] = {}
    async for tp, error in in_turns(errors.items(), SLICE):
        answers[tp] = LeaderAndIsrPartitionError(partition_index=tp.partition, error_code=error)
        by_id.setdefault(topic_ids.get(tp.topic, ZERO_UUID), []).append(answers[tp])
    topics = [LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=found) for topic_id, found in by_id.items()]
    return LeaderAndIsrResponse(topics=topics), answers


def error_response(
    request: LeaderAndIsrRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, LeaderAndIsrResponse]:
    """The error at the top level and for every partition."""
    response = LeaderAndIsrResponse(error_code=code)
    if version < FIRST_TOPIC_ID_VERSION:
        response.partition_errors = yield from listed(
            LeaderAndIsrPartitionError(
                topic_name=state.topic_name, partition_index=state.partition_index, error_code=code
            )
            for state in request.ungrouped_partition_states
        )
    for topic in request.topic_states:
        is_grouped = version >= FIRST_TOPIC_ID_VERSION
        errors = yield from listed(
            LeaderAndIsrPartitionError(
                topic_name="" if is_grouped else topic.topic_name,
                partition_index=state.partition_index,
                error_code=code,
            )
            for state in topic.partition_states
        )
        if is_grouped:
            response.topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        else:
            response.partition_errors += errors
        yield
    return response
