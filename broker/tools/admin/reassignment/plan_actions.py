"""The actions of `odradek reassign` that have a plan: proposing, starting, watching and cancelling moves of replicas.

Kafka: ReassignPartitionsCommand.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.cluster.cluster import ids_text
from odradek.broker.tools.admin.reassignment import log_dir_moves
from odradek.broker.tools.admin.reassignment.reassignment_plan import (
    Assignment,
    Move,
    Plan,
    Replica,
    format_plan,
    moves,
    parse_plan,
    parse_topics,
    plan_value,
    throttles,
)
from odradek.broker.tools.admin.reassignment.replication_throttle import (
    clear_throttles,
    throttle_log_dirs,
    throttle_replication,
)
from odradek.broker.tools.command.comma_list import integers
from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.controller.model.assignment import assign_replicas
from odradek.controller.model.broker_info import Broker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
VERIFY_PERIODICALLY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


async def generate(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Print a plan for the topics of a file. Raises: CommandFailed."""
    topics = parse_topics(options.topics_to_move_json_file)
    try:
        wanted = integers(options.broker_list)
    except ValueError:
        raise CommandFailed(f"--broker-list takes numbers: {options.broker_list}") from None
    if len(set(wanted)) < len(wanted):
        raise CommandFailed(f"Broker list contains duplicate entries: {options.broker_list}")
    metadata = await client.metadata(topics)
    current = await _replicas(client, topics)
    brokers = [
        Broker(node.node_id, (), None if options.disable_rack_aware else node.rack)
        for node in metadata.brokers
        if node.node_id in wanted
    ]
    proposed = propose(current, brokers)
    out.document(
        {"current": plan_value(current), "proposed": plan_value(proposed)},
        [
            f"Current partition replica assignment\n{format_plan(current)}\n",
            f"Proposed partition reassignment configuration\n{format_plan(proposed)}",
        ],
    )


def propose(current: Assignment, brokers: Sequence[Broker]) -> dict[TopicPartition, Sequence[int]]:
    """A new assignment of the topics of `current` to `brokers`. Raises: CommandFailed."""
    if len({broker.rack is None for broker in brokers}) > 1:
        raise CommandFailed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in dict.fromkeys(tp.topic for tp in current):
        replicas = {tp.partition: found for tp, found in current.items() if tp.topic == topic}
        try:
            assigned = assign_replicas(brokers, len(replicas), len(replicas[0]), random.randrange)
        except KafkaError as error:
            raise CommandFailed(error.message) from error
        proposed |= {TopicPartition(topic, partition): found for partition, found in assigned.items()}
    return proposed


async def execute(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Start the moves of a plan. Raises: CommandFailed."""
    plan = parse_plan(options.reassignment_json_file)
    ongoing = await client.reassignments()
    if ongoing and not options.additional:
        raise CommandFailed(EXISTING)
    alive = {node.node_id for node in (await client.metadata()).brokers}
    for broker_id in (broker_id for replicas in plan.partitions.values() for broker_id in replicas):
        if broker_id not in alive:
            raise CommandFailed(f"Unknown broker id {broker_id}")
    current = await _replicas_of(client, plan.partitions)
    out.note(f"Current partition replica assignment\n\n{format_plan(current)}\n")
    out.note("Save this to use as the --reassignment-json-file option during rollback")
    if options.throttle >= 0 or options.replica_alter_log_dirs_throttle >= 0:
        out.note(VERIFY_PERIODICALLY)
        if options.throttle >= 0:
            ongoing_moves = {
                tp: Move(frozenset(found.replicas) - frozenset(found.adding_replicas), frozenset(found.adding_replicas))
                for tp, found in ongoing.items()
            }
            moving = moves(ongoing_moves, plan.partitions, current)
            await throttle_replication(client, throttles(moving), options.throttle)
            out.note(f"The inter-broker throttle limit was set to {options.throttle} B/s")
        if options.replica_alter_log_dirs_throttle >= 0:
            brokers = sorted({replica.broker_id for replica in plan.log_dirs})
            await throttle_log_dirs(client, brokers, options.replica_alter_log_dirs_throttle)
            out.note(f"The replica-alter-dir throttle limit was set to {options.replica_alter_log_dirs_throttle} B/s")
    await _alter(client, plan.partitions, "Error reassigning partition(s):")
    out.result(
        [_row(tp, replicas=list(plan.partitions[tp])) for tp in sorted(plan.partitions)],
        [f"Successfully started partition reassignment{_plural(plan.partitions)} for {_names(plan.partitions)}"],
    )
    await _move(client, out, plan.log_dirs, options.timeout)


async def verify(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Print how far a plan is, and remove the throttles when it is done. Raises: CommandFailed."""
    plan = parse_plan(options.reassignment_json_file)
    ongoing = await client.reassignments()
    known = await _replicas(client, sorted({tp.topic for tp in plan.partitions}), missing_ok=True)
    out.note("Status of partition reassignment:")
    for tp, target in sorted(plan.partitions.items()):
        current = known.get(tp, [])
        if tp in ongoing:
            line = f"Reassignment of partition {tp} is still in progress."
        elif current == target:
            line = f"Reassignment of partition {tp} is completed."
        else:
            line = (
                f"There is no active reassignment of partition {tp}, but replica set is {ids_text(current)} "
                f"rather than {ids_text(target)}."
            )
        done = tp not in ongoing and current == target
        out.result([_row(tp, replicas=current, in_progress=tp in ongoing, completed=done)], [line])
    places = await log_dir_moves.find_places(client, plan.log_dirs)
    are_over = []
    for replica, path in sorted(plan.log_dirs.items()):
        line, is_over = log_dir_moves.progress(replica, places[replica], path)
        out.note(line)
        are_over.append(is_over)
    out.note("")
    if not ongoing and all(are_over) and not options.preserve_throttles:
        await _clear_throttles(client, out, plan)


async def cancel(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Undo the moves of a plan that have not ended. Raises: CommandFailed."""
    plan = parse_plan(options.reassignment_json_file)
    active = sorted(plan.partitions.keys() & (await client.reassignments()).keys())
    if active:
        await _alter(client, dict.fromkeys(active), f"Error cancelling partition reassignment{_plural(active)} for:")
        out.result(
            map(_row, active), [f"Successfully cancelled partition reassignment{_plural(active)} for: {_names(active)}"]
        )
    else:
        out.note("None of the specified partition reassignments are active.")
    places = await log_dir_moves.find_places(client, plan.log_dirs)
    back = {replica: place.current for replica, place in places.items() if place.is_moving() and place.current}
    if back:
        await _move(client, out, back, options.timeout)
    else:
        out.note("None of the specified partition moves are active.")
    if not options.preserve_throttles:
        await _clear_throttles(client, out, plan)


async def _replicas(
    client: AdminClient, topics: Sequence[str], *, missing_ok: bool = False
) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {}
    for topic in (await client.metadata(topics)).topics:
        if missing_ok and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandFailed(f"Topic {topic.name} not found.")
        check(topic.error_code, None, f"Topic {topic.name}")
        for partition in topic.partitions:
            found[TopicPartition(topic.name or "", partition.partition_index)] = partition.replica_nodes
    return found


async def _replicas_of(client: AdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
    wanted = list(partitions)
    found = await _replicas(client, sorted({tp.topic for tp in wanted}))
    if missing := [tp for tp in wanted if tp not in found]:
        raise CommandFailed(f"Unable to find partition: {', '.join(map(str, missing))}")
    return {tp: found[tp] for tp in wanted}


async def _alter(client: AdminClient, targets: Mapping[TopicPartition, Sequence[int] | None], failure: str) -> None:
    topics: dict[str, list[ReassignablePartition]] = {}
    for tp, replicas in targets.items():
        partition = ReassignablePartition(
            partition_index=tp.partition, replicas=None if replicas is None else list(replicas)
        )
        topics.setdefault(tp.topic, []).append(partition)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
    )
    response = await client.ask_controller(request, AlterPartitionReassignmentsResponse)
    check(response.error_code, response.error_message, failure)
    errors = [
        f"{TopicPartition(topic.name, result.partition_index)}: {error_text(result.error_code, result.error_message)}"
        for topic in response.responses
        for result in topic.partitions
        if result.error_code != ErrorCode.NONE
    ]
    if errors:
        raise CommandFailed("\n".join([failure, *errors]))


async def _move(client: AdminClient, out: Output, targets: Mapping[Replica, str], timeout_ms: int) -> None:
    waited_ms = 0
    pending = dict(targets)
    while pending:
        for replica in sorted(await log_dir_moves.start_moves(client, pending)):
            path = pending.pop(replica)
            where = f"for replica {replica.topic_partition} with broker {replica.broker_id}"
            out.note(f"Successfully started moving log directory to {path} {where}")
        if pending:
            if waited_ms >= timeout_ms:
                raise log_dir_moves.not_started(pending)
            await client.back_off()
            waited_ms += client.config.retry_backoff_ms


async def _clear_throttles(client: AdminClient, out: Output, plan: Plan) -> None:
    alive = {node.node_id for node in (await client.metadata()).brokers}
    brokers = sorted(alive.union(*plan.partitions.values()))
    topics = sorted({tp.topic for tp in plan.partitions})
    out.note(f"Clearing broker-level throttles on broker{_plural(brokers)} {ids_text(brokers)}")
    out.note(f"Clearing topic-level throttles on topic{_plural(topics)} {','.join(topics)}")
    await clear_throttles(client, brokers, topics)


def _row(topic_partition: TopicPartition, **facts: object) -> dict[str, object]:
    return {"topic": topic_partition.topic, "partition": topic_partition.partition, **facts}


def _plural(elements: Sequence[object] | Mapping[TopicPartition, object]) -> str:
    return "" if len(elements) == 1 else "s"


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))
