"""Commands of a group transcript about offsets: committing, within a transaction too, fetching, deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import run_through
from tests.support.transcripts.group_notation import Line, duration, expanded, split_partition

if TYPE_CHECKING:
    from odradek.coordinator.group.offsets.offset_api import Outcome
    from tests.support.transcripts.group_transcript import Command, Transcript


def commit(transcript: Transcript, line: Line) -> None:
    """commit m1 t-0:5 t-1:7:some-metadata [gen=N] [id=..] [v=9] [retention=1h] [at=MS]"""
    client = transcript.client(line)
    context = transcript.context(line, client.name, "commit")
    retention = line.options.get("retention")
    request = OffsetCommitRequest(
        group_id=client.group,
        generation_id_or_member_epoch=int(line.options.get("gen", client.generation)),
        member_id=transcript.member_id(line, client),
        group_instance_id=client.instance,
        retention_time_ms=-1 if retention is None else duration(retention),
    )
    at_ms = int(line.options.get("at", -1))
    for text in line.words[1:]:
        name, offset, *metadata = text.split(":")
        topic, partition = split_partition(name)
        request.topics.append(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=int(offset),
                        committed_leader_epoch=int(line.options.get("epoch", -1)),
                        commit_timestamp=at_ms,
                        committed_metadata=expanded(metadata[0]) if metadata else None,
                    )
                ],
            )
        )

    def show(outcome: Outcome) -> None:
        transcript.say(f"{client.name} <- OffsetCommit {_shown(outcome)}")

    respond = transcript.asked(client, context.api_version, show)
    run_through(transcript.coordinator.commit_offsets(context, request, respond))


def _shown(outcome: Outcome) -> str:
    """The partitions of each topic together, as in an answer."""
    return " ".join(
        f"{name}-{index}:{error.name}"
        for topic in dict.fromkeys(name for name, _ in outcome)
        for (name, index), error in outcome.items()
        if name == topic
    )


def txn_commit(transcript: Transcript, line: Line) -> None:
    """txn-commit p1 t-0:5 ... [group=g] [gen=N] [id=..]: offsets within the open transaction of producer p1"""
    client = transcript.client(line)
    context = transcript.context(line, client.name, "txn-commit")
    producer = transcript.producers.setdefault(client.name, TransactionalProducer(len(transcript.producers) + 1, 0))
    request = TxnOffsetCommitRequest(
        transactional_id=client.name,
        group_id=client.group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id=int(line.options.get("gen", -1)),
        member_id=transcript.id_of(line.options.get("id", "")),
    )
    for text in line.words[1:]:
        name, offset = text.split(":")
        topic, partition = split_partition(name)
        request.topics.append(
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=int(offset))],
            )
        )

    def show(outcome: Outcome) -> None:
        transcript.say(f"{client.name} <- TxnOffsetCommit {_shown(outcome)}")

    run_through(
        transcript.coordinator.commit_transactional_offsets(
            context, request, transcript.asked(client, context.api_version, show)
        )
    )


def end_txn(transcript: Transcript, line: Line) -> None:
    """end-txn p1 commit|abort: its marker is written to the group's partition"""
    producer = transcript.producers[line.words[0]]
    commit = line.words[1] == "commit"
    transcript.log.append_marker(0, producer, commit=commit)
    transcript.coordinator.on_transaction_completed(producer.producer_id, [0], committed=commit)


def fetch(transcript: Transcript, line: Line) -> None:
    """fetch g|g,h t-0 t-1 | all [v=9] [stable=1]"""
    client = transcript.client_named("fetch")
    context = transcript.context(line, client.name, "fetch")
    names = line.words[1:]
    partitions = None if names == ["all"] else [split_partition(name) for name in names]
    groups = ["" if name == "none" else name for name in line.words[0].split(",")]
    request = OffsetFetchRequest(require_stable="stable" in line.options)
    if context.api_version >= 8:
        request.groups = [
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if partitions is None
                else [OffsetFetchRequestTopics(name=topic, partition_indexes=[index]) for topic, index in partitions],
            )
            for group in groups
        ]
    else:
        request.group_id = groups[0]
        request.topics = (
            None
            if partitions is None
            else [OffsetFetchRequestTopic(name=topic, partition_indexes=[index]) for topic, index in partitions]
        )

    def show(response: OffsetFetchResponse) -> None:
        if context.api_version < 8:
            _show_fetched(transcript, f"OffsetFetch {ErrorCode(response.error_code).name}", response.topics)
        for group in response.groups:
            _show_fetched(transcript, f"OffsetFetch {group.group_id} {ErrorCode(group.error_code).name}", group.topics)

    respond = transcript.asked(client, context.api_version, show)
    run_through(transcript.coordinator.fetch_offsets(context, request, respond))


def _show_fetched(transcript: Transcript, head: str, topics: list) -> None:  # type: ignore[type-arg]
    found = []
    for topic in topics:
        for partition in topic.partitions:
            text = f"{topic.name}-{partition.partition_index}:{partition.committed_offset}"
            if partition.committed_leader_epoch != -1:
                text += f"(epoch {partition.committed_leader_epoch})"
            if partition.metadata:
                text += f"({partition.metadata})"
            if partition.error_code:
                text += f":{ErrorCode(partition.error_code).name}"
            found.append(text)
    transcript.say(" ".join([head, *found]))


def delete_offsets(transcript: Transcript, line: Line) -> None:
    """delete-offsets g t-0 ..."""
    request = OffsetDeleteRequest(group_id="" if line.words[0] == "none" else line.words[0])
    for name in line.words[1:]:
        topic, partition = split_partition(name)
        request.topics.append(
            OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)])
        )

    def show(response: OffsetDeleteResponse) -> None:
        outcome = " ".join(
            f"{topic.name}-{partition.partition_index}:{ErrorCode(partition.error_code).name}"
            for topic in response.topics
            for partition in topic.partitions
        )
        transcript.say(f"OffsetDelete {ErrorCode(response.error_code).name} {outcome}".rstrip())

    run_through(
        transcript.coordinator.delete_offsets(transcript.context(line, "admin", "delete-offsets"), request, show)
    )


def topic_deleted(transcript: Transcript, line: Line) -> None:
    """topic-deleted t-0 ...: the partitions do not exist any more"""
    transcript.coordinator.on_partitions_deleted(TopicPartition(*split_partition(name)) for name in line.words)


COMMANDS: dict[str, Command] = {
    "commit": commit,
    "txn-commit": txn_commit,
    "end-txn": end_txn,
    "fetch": fetch,
    "delete-offsets": delete_offsets,
    "topic-deleted": topic_deleted,
}
