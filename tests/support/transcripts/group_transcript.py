"""Readable transcripts of a group coordinator: commands, and what it answered.

A transcript is a text file of blocks. A block is a command line, a line of dashes, and what happened: responses as
they arrive, and every change of a group's state. Blocks are separated by blank lines; lines that begin with # are
prose.

    join m1
    ----
    m1 <- JoinGroup MEMBER_ID_REQUIRED member=m1-1
    g: Empty gen 0

A name (`m1`) is a client with that client id. It remembers the member id and generation of the last response, and uses
them unless the command gives others (`id=`, `gen=`; `id=none` is the empty id). Random ids count up from 1. What a
command does is in the modules `group_*_commands`, one table each. `check` replays a file, `python -m
tests.support.transcripts.group_transcript FILE...` rewrites the outputs of files, to be read before they are committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import (
    FakeTransactionVerifier,
    InMemoryConsumerOffsetTree,
    InMemoryCoordinatorLog,
)
from tests.support.transcripts import (
    group_admin_commands,
    group_member_commands,
    group_offset_commands,
    group_world_commands,
)
from tests.support.transcripts.group_notation import START_MS, Line
from tests.support.transcripts.transcript_file import rewrite

ResponseT = TypeVar("ResponseT", bound=Message)
Command = Callable[["Transcript", Line], None]

HIGHEST = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9, "fetch": 9, "txn-commit": 4}

COMMANDS: dict[str, Command] = {
    **group_world_commands.COMMANDS,
    **group_member_commands.COMMANDS,
    **group_offset_commands.COMMANDS,
    **group_admin_commands.COMMANDS,
}


@dataclass
class Client:
    """The state of a client."""

    name: str
    member_id: str = ""
    generation: int = -1
    group: str = "g"
    instance: str | None = None
    protocols: str = "range:t"
    pending: int = 0


class Transcript:
    """One coordinator and its clients, driven by command lines."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_MS, monotonic_ms=0)
        self.timer = SystemTimer(self.clock)
        self.log = InMemoryCoordinatorLog(partition_count=1)
        self.tree = InMemoryConsumerOffsetTree()
        self.verifier = FakeTransactionVerifier()
        self.clients: dict[str, Client] = {}
        self.config = GroupConfig(group_initial_rebalance_delay_ms=0)
        self._uuids = count(1)
        self.said: list[str] = []
        self.states: dict[str, str] = {}
        self.batches_shown = 0
        self.epoch = 0
        self.producers: dict[str, TransactionalProducer] = {}
        self.start()
        self.coordinator.on_elected(0, 0)

    def start(self) -> None:
        """Start a process: a new coordinator on the present log."""
        self.coordinator = GroupCoordinator(
            config=self.config,
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            new_uuid=lambda: str(next(self._uuids)),
            verify_transaction=self.verifier,
            consumer_offset_tree=self.tree,
        )
        self.coordinator.startup()

    def run(self, text: str) -> list[str]:
        """Execute a command; what it brought about."""
        line = Line.parse(text)
        COMMANDS[line.command](self, line)
        self.note_states()
        out, self.said = self.said, []
        return out

    def note_states(self) -> None:
        now = {group.group_id: f"{group.state.value} gen {group.generation_id}" for group in self.coordinator.groups}
        for group_id in sorted(now.keys() | self.states.keys()):
            if now.get(group_id) != self.states.get(group_id):
                self.say(f"{group_id}: {now.get(group_id, 'gone')}")
        self.states = now

    def say(self, text: str) -> None:
        self.said.append(text)

    def pass_time(self, ms: int) -> None:
        """Let time pass, timer by timer, and note after each what it has changed."""
        end_ms = self.clock.monotonic_ms() + ms
        while (due_ms := self.timer.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.monotonic_ms()))
            self.timer.advance()
            self.note_states()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def client(self, line: Line) -> Client:
        """The client that gives the command; it remembers the options."""
        client = self.client_named(line.words[0])
        client.group = "" if line.options.get("group") == "none" else line.options.get("group", client.group)
        client.instance = line.options.get("instance", client.instance)
        client.protocols = line.options.get("protocols", client.protocols)
        return client

    def client_named(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def member_id(self, line: Line, client: Client) -> str:
        wanted = line.options.get("id", client.member_id)
        return "" if wanted == "none" else wanted

    def context(self, line: Line, client_id: str, command: str) -> GroupRequestContext:
        version = int(line.options.get("v", HIGHEST.get(command, 5)))
        return GroupRequestContext(client_id=client_id, client_host="127.0.0.1", api_version=version)

    def asked(self, client: Client, version: int, show: Callable[[ResponseT], None]) -> Callable[[ResponseT], None]:
        """A respond callback that must be called once, with a response that its version can carry."""
        answered = False
        client.pending += 1

        def respond(response: ResponseT) -> None:
            nonlocal answered
            assert not answered, f"{client.name} answered twice"
            answered = True
            client.pending -= 1
            if isinstance(response, Message):  # the handlers make the answers of commits
                version_on_wire = min(version, type(response).VERSIONS.last)
                decode(type(response), encode(response, version_on_wire), version_on_wire)
            show(response)

        return respond

    def id_of(self, name: str) -> str:
        return self.clients[name].member_id if name in self.clients else name


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name), Transcript().run)
