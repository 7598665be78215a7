"""Readable transcripts of a group coordinator: commands, and what it answered.

A transcript is a text file of blocks. A block is a command line, a line of dashes, and what happened: responses as
they arrive, and every change of a group's state. Blocks are separated by blank lines; lines that begin with # are
prose.

    join m1
    ----
    m1 <- JoinGroup MEMBER_ID_REQUIRED member=m1-1
    g: Empty gen 0

Whoever is named (`m1`) is a client: it has a client id of that name, remembers the member id and generation it was
last told, and uses them unless told otherwise (`id=`, `gen=`; `id=none` is the empty id). Random ids count up from 1.
`run` replays a file, `python -m tests.support.group_transcript FILE...` rewrites the outputs of files, to be read
before they are committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.records import (
    is_group_key,
    offset_commit_key,
    offset_commit_value,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
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
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.schema import Message
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.coordinator_log import InMemoryConsumerOffsetTree, InMemoryCoordinatorLog

ResponseT = TypeVar("ResponseT", bound=Message)

RULE = "----"
START_MS = 1_700_000_000_000
FILLER_VALUE = offset_commit_value(OffsetAndMetadata(offset=0, commit_timestamp_ms=START_MS))
HIGHEST = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9, "fetch": 9, "txn-commit": 4}


@dataclass
class Client:
    """What a client knows."""

    name: str
    member_id: str = ""
    generation: int = -1
    group: str = "g"
    instance: str | None = None
    protocols: str = "range:t"
    pending: int = 0


@dataclass
class Line:
    """A command, its plain words and its options."""

    command: str
    words: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Line:
        command, *rest = text.split()
        line = Line(command)
        for word in rest:
            key, equals, value = word.partition("=")
            if equals and "-" not in key.rsplit(":", 1)[-1]:
                line.options[key] = value
            else:
                line.words.append(word)
        return line


class Transcript:
    """One coordinator and its clients, driven by command lines."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_MS, monotonic_ms=0)
        self.timer = SystemTimer(self.clock)
        self.log = InMemoryCoordinatorLog(partition_count=1)
        self.tree = InMemoryConsumerOffsetTree()
        self.clients: dict[str, Client] = {}
        self.config = GroupConfig(group_initial_rebalance_delay_ms=0)
        self._uuids = count(1)
        self._out: list[str] = []
        self._states: dict[str, str] = {}
        self._batches_shown = 0
        self._epoch = 0
        self._producers: dict[str, TransactionalProducer] = {}
        self._start()
        self.coordinator.on_elected(0, 0)

    def _start(self) -> None:
        self.coordinator = GroupCoordinator(
            config=self.config,
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            new_uuid=lambda: str(next(self._uuids)),
            consumer_offset_tree=self.tree,
        )
        self.coordinator.startup()

    def run(self, text: str) -> list[str]:
        """Execute a command; what it brought about."""
        line = Line.parse(text)
        handler: Callable[[Line], None] = getattr(self, f"do_{line.command.replace('-', '_')}")
        handler(line)
        self._note_states()
        out, self._out = self._out, []
        return out

    def _note_states(self) -> None:
        now = {group.group_id: f"{group.state.value} gen {group.generation_id}" for group in self.coordinator.groups}
        for group_id in sorted(now.keys() | self._states.keys()):
            if now.get(group_id) != self._states.get(group_id):
                self._say(f"{group_id}: {now.get(group_id, 'gone')}")
        self._states = now

    def _say(self, text: str) -> None:
        self._out.append(text)

    # -- the world -------------------------------------------------------------------------------------------

    def do_config(self, line: Line) -> None:
        """config group_max_size=2 ...: start over with these settings."""
        defaults = {"group_initial_rebalance_delay_ms": 0}
        values = defaults | {key: int(value) for key, value in line.options.items()}
        self.config = GroupConfig(**values)
        self.coordinator.shutdown()
        self.do_restart(line)

    def do_wait(self, line: Line) -> None:
        """wait 3s | 500ms [alive=m1,m2 beat=1s]: let time pass, with heartbeats of some, and what is due happen."""
        left_ms = duration(line.words[0])
        beat_ms = duration(line.options.get("beat", "1s"))
        alive = line.options["alive"].split(",") if "alive" in line.options else []
        while alive and left_ms > beat_ms:
            self._pass(beat_ms)
            left_ms -= beat_ms
            said = len(self._out)
            for name in alive:
                self.do_heartbeat(Line("heartbeat", [name]))
            del self._out[said:]
        self._pass(left_ms)

    def _pass(self, ms: int) -> None:
        end_ms = self.clock.monotonic_ms() + ms
        while (due_ms := self.timer.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.monotonic_ms()))
            self.timer.advance()
            self._note_states()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def do_hold(self, line: Line) -> None:
        """hold: appends are not committed until `release`."""
        self.log.hold = True

    def do_release(self, line: Line) -> None:
        """release [ERROR]: commit or fail all appends held back, and stop holding."""
        self.log.hold = False
        self.log.release(ErrorCode[line.words[0]] if line.words else ErrorCode.NONE)

    def do_fail(self, line: Line) -> None:
        """fail ERROR | fail NONE: appends are refused with the error."""
        self.log.error = ErrorCode[line.words[0]]

    def do_offline(self, line: Line) -> None:
        """offline: this broker has no replica of the partition any more, though nobody has told the coordinator."""
        self.log.missing.add(0)

    def do_fill(self, line: Line) -> None:
        """fill 1000: as many offsets of a group `filler`, so that the log takes a while to load."""
        offsets = [
            SimpleRecord(START_MS, offset_commit_key("filler", TopicPartition("f", index)), FILLER_VALUE)
            for index in range(int(line.words[0]))
        ]
        self.log.append(0, offsets, lambda error, offset: None)
        self._batches_shown += 1

    def do_log(self, line: Line) -> None:
        """log: what has been appended since it was last shown."""
        batches = self.log.batches.get(0, [])
        for batch in list(self.log.read_all(0))[self._batches_shown :]:
            mark = " transactional" if batch.is_transactional else ""
            if batch.is_control:
                self._say(f"@{batch.base_offset} marker of producer {batch.producer_id}")
                continue
            for record in batch.records():
                assert record.key is not None
                self._say(f"@{record.offset}{mark} {show_record(record.key, record.value)}")
        self._batches_shown = len(batches)

    def do_restart(self, line: Line) -> None:
        """restart: the process dies and another takes over with the same log. Parked requests are lost."""
        self.timer = SystemTimer(self.clock)
        self._states = {}
        self._epoch += 1
        for client in self.clients.values():
            client.pending = 0
        self._start()
        self.coordinator.on_elected(0, self._epoch)

    def do_resign(self, line: Line) -> None:
        """resign [epoch=N]: the partition's leader moves away."""
        self._epoch = int(line.options.get("epoch", self._epoch + 1))
        self.coordinator.on_resigned(0, self._epoch)

    def do_elect(self, line: Line) -> None:
        """elect [epoch=N]: the partition's leader is here again."""
        self._epoch = int(line.options.get("epoch", self._epoch + 1))
        self.coordinator.on_elected(0, self._epoch)

    def do_waiting(self, line: Line) -> None:
        """waiting: sessions and barriers that wait, and clients that have not been answered."""
        unanswered = [client.name for client in self.clients.values() if client.pending]
        self._say(f"{self.coordinator.waiting_count} waiting, unanswered: {' '.join(unanswered) or 'nobody'}")

    # -- members ---------------------------------------------------------------------------------------------

    def _client(self, line: Line) -> Client:
        name = line.words[0]
        client = self.clients.setdefault(name, Client(name))
        client.group = "" if line.options.get("group") == "none" else line.options.get("group", client.group)
        client.instance = line.options.get("instance", client.instance)
        client.protocols = line.options.get("protocols", client.protocols)
        return client

    def _member_id(self, line: Line, client: Client) -> str:
        wanted = line.options.get("id", client.member_id)
        return "" if wanted == "none" else wanted

    def _context(self, line: Line, client_id: str, command: str) -> GroupRequestContext:
        version = int(line.options.get("v", HIGHEST.get(command, 5)))
        return GroupRequestContext(client_id=client_id, client_host="127.0.0.1", api_version=version)

    def _asked(self, client: Client, version: int, show: Callable[[ResponseT], None]) -> Callable[[ResponseT], None]:
        """A respond callback that insists on being called once, and on a response its version can carry."""
        answered = False
        client.pending += 1

        def respond(response: ResponseT) -> None:
            nonlocal answered
            assert not answered, f"{client.name} answered twice"
            answered = True
            client.pending -= 1
            version_on_wire = min(version, type(response).VERSIONS.last)
            decode(type(response), encode(response, version_on_wire), version_on_wire)
            show(response)

        return respond

    def do_join(self, line: Line) -> None:
        """join m1 [group=g] [v=9] [id=..] [instance=..] [protocols=range:t,sticky:t+u] [session=10s] [rebalance=60s]"""
        client = self._client(line)
        context = self._context(line, client.name, "join")
        request = JoinGroupRequest(
            group_id=client.group,
            session_timeout_ms=duration(line.options.get("session", "10s")),
            rebalance_timeout_ms=duration(line.options.get("rebalance", "60s")),
            member_id=self._member_id(line, client),
            group_instance_id=client.instance,
            protocol_type=line.options.get("type", "consumer"),
            protocols=[] if client.protocols == "none" else [protocol(text) for text in client.protocols.split(",")],
            reason=line.options.get("reason"),
        )

        def show(response: JoinGroupResponse) -> None:
            error = ErrorCode(response.error_code)
            text = f"{client.name} <- JoinGroup {error.name}"
            if error == ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = response.member_id
            if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.member_id = ""
            if error == ErrorCode.NONE:
                client.member_id, client.generation = response.member_id, response.generation_id
                members = " ".join(member.member_id for member in response.members)
                text += f" gen={response.generation_id} protocol={response.protocol_name} leader={response.leader}"
                text += f" members=[{members}]" if members else ""
                text += " skip-assignment" if response.skip_assignment else ""
            self._say(f"{text} member={response.member_id or 'none'}")

        self.coordinator.join_group(context, request, self._asked(client, context.api_version, show))

    def do_sync(self, line: Line) -> None:
        """sync m1 [m1:A m2:B ...] [gen=N] [v=5] [type=..] [protocol=..]: with assignments if it leads"""
        client = self._client(line)
        context = self._context(line, client.name, "sync")
        protocol_name = client.protocols.split(",")[0].split(":")[0]
        shares = [word.split(":") for word in line.words[1:]]
        modern = context.api_version >= 5
        request = SyncGroupRequest(
            group_id=client.group,
            generation_id=int(line.options.get("gen", client.generation)),
            member_id=self._member_id(line, client),
            group_instance_id=client.instance,
            protocol_type=nullable(line.options.get("type", "consumer" if modern else "null")),
            protocol_name=nullable(line.options.get("protocol", protocol_name if modern else "null")),
            assignments=[
                SyncGroupRequestAssignment(member_id=self._id_of(name), assignment=share.encode())
                for name, share in shares
            ],
        )

        def show(response: SyncGroupResponse) -> None:
            text = f"{client.name} <- SyncGroup {ErrorCode(response.error_code).name}"
            if response.error_code == ErrorCode.NONE:
                text += f" assignment={response.assignment.decode() or 'nothing'}"
            self._say(text)

        self.coordinator.sync_group(context, request, self._asked(client, context.api_version, show))

    def _id_of(self, name: str) -> str:
        return self.clients[name].member_id if name in self.clients else name

    def do_heartbeat(self, line: Line) -> None:
        """heartbeat m1 [gen=N] [id=..]"""
        client = self._client(line)
        context = self._context(line, client.name, "heartbeat")
        request = HeartbeatRequest(
            group_id=client.group,
            generation_id=int(line.options.get("gen", client.generation)),
            member_id=self._member_id(line, client),
            group_instance_id=client.instance,
        )

        def show(response: HeartbeatResponse) -> None:
            self._say(f"{client.name} <- Heartbeat {ErrorCode(response.error_code).name}")

        self.coordinator.heartbeat(context, request, self._asked(client, context.api_version, show))

    def do_leave(self, line: Line) -> None:
        """leave m1 [m2 ...] [v=5] [group=g]; a word with a slash is id/instance, either may be `none`"""
        names = line.words
        first = self.clients.setdefault(names[0], Client(names[0]))
        group = line.options.get("group", first.group)
        context = self._context(line, first.name, "leave")
        identities = []
        for name in names:
            member_id, slash, instance = name.partition("/")
            if slash:
                identities.append(
                    MemberIdentity(
                        member_id="" if member_id == "none" else self._id_of(member_id),
                        group_instance_id=None if instance == "none" else instance,
                    )
                )
            else:
                client = self.clients.setdefault(name, Client(name))
                identities.append(
                    MemberIdentity(member_id=self._member_id(line, client), group_instance_id=client.instance)
                )
        if context.api_version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=identities[0].member_id)
        else:
            request = LeaveGroupRequest(group_id="" if group == "none" else group, members=identities)

        def show(response: LeaveGroupResponse) -> None:
            members = " ".join(
                f"{member.member_id or member.group_instance_id or 'none'}:{ErrorCode(member.error_code).name}"
                for member in response.members
            )
            self._say(f"{first.name} <- LeaveGroup {ErrorCode(response.error_code).name} {members}".rstrip())

        self.coordinator.leave_group(context, request, self._asked(first, context.api_version, show))

    # -- offsets ---------------------------------------------------------------------------------------------

    def do_commit(self, line: Line) -> None:
        """commit m1 t-0:5 t-1:7:some-metadata [gen=N] [id=..] [v=9] [retention=1h] [at=MS]"""
        client = self._client(line)
        context = self._context(line, client.name, "commit")
        retention = line.options.get("retention")
        request = OffsetCommitRequest(
            group_id=client.group,
            generation_id_or_member_epoch=int(line.options.get("gen", client.generation)),
            member_id=self._member_id(line, client),
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

        def show(response: OffsetCommitResponse) -> None:
            outcome = " ".join(
                f"{topic.name}-{partition.partition_index}:{ErrorCode(partition.error_code).name}"
                for topic in response.topics
                for partition in topic.partitions
            )
            self._say(f"{client.name} <- OffsetCommit {outcome}")

        self.coordinator.commit_offsets(context, request, self._asked(client, context.api_version, show))

    def do_txn_commit(self, line: Line) -> None:
        """txn-commit p1 t-0:5 ... [group=g] [gen=N] [id=..]: offsets within the open transaction of producer p1"""
        client = self._client(line)
        context = self._context(line, client.name, "txn-commit")
        producer = self._producers.setdefault(client.name, TransactionalProducer(len(self._producers) + 1, 0))
        request = TxnOffsetCommitRequest(
            transactional_id=client.name,
            group_id=client.group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=int(line.options.get("gen", -1)),
            member_id=self._id_of(line.options.get("id", "")),
        )
        for text in line.words[1:]:
            name, offset = text.split(":")
            topic, partition = split_partition(name)
            request.topics.append(
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=int(offset))
                    ],
                )
            )

        def show(response: TxnOffsetCommitResponse) -> None:
            outcome = " ".join(
                f"{topic.name}-{partition.partition_index}:{ErrorCode(partition.error_code).name}"
                for topic in response.topics
                for partition in topic.partitions
            )
            self._say(f"{client.name} <- TxnOffsetCommit {outcome}")

        self.coordinator.commit_transactional_offsets(context, request, self._asked(client, context.api_version, show))

    def do_end_txn(self, line: Line) -> None:
        """end-txn p1 commit|abort: its marker is written to the group's partition"""
        producer = self._producers[line.words[0]]
        commit = line.words[1] == "commit"
        self.log.append_marker(0, producer, commit=commit)
        self.coordinator.on_transaction_completed(producer.producer_id, [0], committed=commit)

    def do_fetch(self, line: Line) -> None:
        """fetch g|g,h t-0 t-1 | all [v=9] [stable=1]"""
        client = self.clients.setdefault("fetch", Client("fetch"))
        context = self._context(line, client.name, "fetch")
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
                    else [
                        OffsetFetchRequestTopics(name=topic, partition_indexes=[index]) for topic, index in partitions
                    ],
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
                self._show_fetched(f"OffsetFetch {ErrorCode(response.error_code).name}", response.topics)
            for group in response.groups:
                self._show_fetched(f"OffsetFetch {group.group_id} {ErrorCode(group.error_code).name}", group.topics)

        self.coordinator.fetch_offsets(context, request, self._asked(client, context.api_version, show))

    def _show_fetched(self, head: str, topics: list) -> None:  # type: ignore[type-arg]
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
        self._say(" ".join([head, *found]))

    def do_delete_offsets(self, line: Line) -> None:
        """delete-offsets g t-0 ..."""
        request = OffsetDeleteRequest(group_id="" if line.words[0] == "none" else line.words[0])
        for name in line.words[1:]:
            topic, partition = split_partition(name)
            request.topics.append(
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
            )

        def show(response: OffsetDeleteResponse) -> None:
            outcome = " ".join(
                f"{topic.name}-{partition.partition_index}:{ErrorCode(partition.error_code).name}"
                for topic in response.topics
                for partition in topic.partitions
            )
            self._say(f"OffsetDelete {ErrorCode(response.error_code).name} {outcome}".rstrip())

        self.coordinator.delete_offsets(self._context(line, "admin", "delete-offsets"), request, show)

    def do_topic_deleted(self, line: Line) -> None:
        """topic-deleted t-0 ...: the partitions do not exist any more"""
        self.coordinator.on_partitions_deleted(TopicPartition(*split_partition(name)) for name in line.words)

    # -- administration --------------------------------------------------------------------------------------

    def do_describe(self, line: Line) -> None:
        """describe g ..."""

        def show(response: DescribeGroupsResponse) -> None:
            for group in response.groups:
                head = f"{group.group_id or 'none'}: {ErrorCode(group.error_code).name} {group.group_state}"
                self._say(f"{head} type={group.protocol_type} protocol={group.protocol_data}")
                for member in group.members:
                    instance = "" if member.group_instance_id is None else f" instance={member.group_instance_id}"
                    self._say(
                        f"  {member.member_id}{instance} client={member.client_id} host={member.client_host} "
                        f"metadata={len(member.member_metadata)} bytes assignment={member.member_assignment.decode()}"
                    )

        request = DescribeGroupsRequest(groups=["" if word == "none" else word for word in line.words])
        self.coordinator.describe_groups(self._context(line, "admin", "describe"), request, show)

    def do_list(self, line: Line) -> None:
        """list [states=Stable,Empty] [types=classic]"""

        def show(response: ListGroupsResponse) -> None:
            groups = [f"{group.group_id}/{group.group_state}/{group.group_type}" for group in response.groups]
            self._say(" ".join([f"ListGroups {ErrorCode(response.error_code).name}", *groups]))

        request = ListGroupsRequest(
            states_filter=line.options["states"].split(",") if "states" in line.options else [],
            types_filter=line.options["types"].split(",") if "types" in line.options else [],
        )
        self.coordinator.list_groups(self._context(line, "admin", "list"), request, show)

    def do_delete(self, line: Line) -> None:
        """delete g ..."""

        def show(response: DeleteGroupsResponse) -> None:
            results = [f"{result.group_id}:{ErrorCode(result.error_code).name}" for result in response.results]
            self._say(" ".join(["DeleteGroups", *results]))

        request = DeleteGroupsRequest(groups_names=line.words)
        self.coordinator.delete_groups(self._context(line, "admin", "delete"), request, show)


def duration(text: str) -> int:
    """Milliseconds of 5ms, 3s, 2m, 1h or 7d."""
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    number = text.rstrip("mshd")
    return int(number) * units[text[len(number) :]]


def split_partition(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def nullable(text: str) -> str | None:
    return None if text == "null" else text


def expanded(text: str) -> str:
    """`x*4096` is a long string."""
    letter, star, times = text.partition("*")
    return letter * int(times) if star else text


def protocol(text: str) -> JoinGroupRequestProtocol:
    """`range:t+u`: the consumer protocol's subscription to t and u; `range:!abc`: those bytes."""
    name, _, topics = text.partition(":")
    if topics.startswith("!"):
        return JoinGroupRequestProtocol(name=name, metadata=topics[1:].encode())
    subscription = ConsumerProtocolSubscription(topics=topics.split("+") if topics else [])
    return JoinGroupRequestProtocol(name=name, metadata=b"\0\1" + encode(subscription, 1))


def show_record(key: bytes, value: bytes | None) -> str:
    if is_group_key(key):
        text = f"group {read_group_key(key)}"
        if value is None:
            return f"{text} deleted"
        group = read_group_value(value)
        members = " ".join(f"{member.member_id}:{member.assignment.decode()}" for member in group.members)
        return (
            f"{text} v{int.from_bytes(value[:2], 'big')} gen={group.generation} protocol={group.protocol} "
            f"leader={group.leader} since={group.current_state_timestamp - START_MS} members=[{members}]"
        )
    group_id, topic_partition = read_offset_key(key)
    text = f"offset {group_id} {topic_partition}"
    if value is None:
        return f"{text} deleted"
    offset = read_offset_value(value)
    expiry = "" if offset.expire_timestamp_ms is None else f" expires={offset.expire_timestamp_ms - START_MS}"
    return (
        f"{text} v{int.from_bytes(value[:2], 'big')} offset={offset.offset} epoch={offset.leader_epoch} "
        f"at={offset.commit_timestamp_ms - START_MS}{expiry} metadata={offset.metadata[:20]}"
    )


def blocks(text: str) -> Iterator[tuple[list[str], str | None, list[str]]]:
    """Prose before a command, the command, and its expected output."""
    prose: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            prose.append(line)
            continue
        expected = []
        following = next(lines, "")
        if following == RULE:
            for output in lines:
                if not output.strip():
                    break
                expected.append(output)
        yield prose, line, expected
        prose = []
    yield prose, None, []


def rewrite(path: Path) -> None:
    transcript = Transcript()
    out: list[str] = []
    for prose, command, _ in blocks(path.read_text()):
        out += prose
        if command is not None:
            out += [command, RULE, *transcript.run(command), ""]
    path.write_text("\n".join(out).rstrip() + "\n")


def check(path: Path) -> list[str]:
    """Replay a transcript; the differences, in words."""
    transcript = Transcript()
    differences = []
    for _, command, expected in blocks(path.read_text()):
        if command is not None and (got := transcript.run(command)) != expected:
            differences.append("\n".join([command, "expected:", *expected, "got:", *got]))
    return differences


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name))
