"""Readable transcripts of a transaction coordinator: commands, and what it answered.

    init p1
    ----
    p1 <- InitProducerId NONE id=1 epoch=0
    p1: Empty 1/0

The output is answers as they come, markers as they are sent, and every change of a transaction: its state, the producer
id and epoch, its partitions, and the pending state. A name (`p1`) is a producer with that transactional id; it
remembers the id and epoch of the last response and uses them unless the command gives others (`id=`, `epoch=`). `check`
of transcript_file replays a file, `python -m tests.support.transcripts.transaction_transcript FILE...` rewrites the
outputs of files, to be read before they are committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.coordinator import NO_PRODUCER, ProducerIdAndEpoch, TransactionCoordinator
from odradek.coordinator.transaction.records import (
    read_transaction_key,
    read_transaction_value,
    transaction_key,
    transaction_value,
)
from odradek.coordinator.transaction.states import STATES_BY_NAME
from odradek.coordinator.transaction.transaction_metadata import TransitMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import run_through
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog
from tests.support.in_process.marker_channel import FakeMarkerChannel
from tests.support.transcripts.group_notation import START_MS, Line, duration, split_partition
from tests.support.transcripts.transcript_file import rewrite

TIMEOUT_MS = 60_000


class Transcript:
    """One coordinator and its producers, driven by command lines."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_MS, monotonic_ms=0)
        self.log = InMemoryCoordinatorLog(partition_count=1)
        self.channel = FakeMarkerChannel()
        self.config = TransactionConfig()
        self.producers: dict[str, ProducerIdAndEpoch] = {}
        self.said: list[str] = []
        self.states: dict[str, str] = {}
        self.epoch = 0
        self.no_ids = False
        self._ids = count(1)
        self._batches_shown = 0
        self._markers_shown = 0
        self.start()

    def start(self) -> None:
        """Start a process on the present log."""
        self.timer = SystemTimer(self.clock)
        self.states = {}
        self.coordinator = TransactionCoordinator(
            config=self.config,
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            producer_ids=self._give_id,
            channel=self.channel,
        )
        self.coordinator.startup()
        self.coordinator.on_elected(0, self.epoch)

    def _give_id(self, use: Callable[[int | ErrorCode], None]) -> None:
        use(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.no_ids else next(self._ids))

    def run(self, text: str) -> list[str]:
        """Execute a command; what it brought about."""
        line = Line.parse(text)
        COMMANDS[line.command](self, line)
        self.note_changes()
        out, self.said = self.said, []
        return out

    def say(self, text: str) -> None:
        self.said.append(text)

    def note_changes(self) -> None:
        """Note the markers sent to leaders, and the changes of transactions."""
        for broker_id, request in self.channel.sent[self._markers_shown :]:
            for marker in request.markers:
                kind = "COMMIT" if marker.transaction_result else "ABORT"
                where = [f"{topic.name}-{index}" for topic in marker.topics for index in topic.partition_indexes]
                who = f"{marker.producer_id}/{marker.producer_epoch} of coordinator epoch {marker.coordinator_epoch}"
                self.say(f"-> broker {broker_id}: {kind} {' '.join(where)} for {who}")
        self._markers_shown = len(self.channel.sent)
        now = {}
        for found in self.coordinator.states.transactions:
            state = str(found.state) if found.pending_state is None else f"{found.state} -> {found.pending_state}"
            partitions = "".join(f" {tp}" for tp in sorted(found.topic_partitions))
            now[found.transactional_id] = f"{state} {found.producer_id}/{found.producer_epoch}{partitions}"
        for name in sorted(now.keys() | self.states.keys()):
            if now.get(name) != self.states.get(name):
                self.say(f"{name}: {now.get(name, 'gone')}")
        self.states = now

    def pass_time(self, ms: int) -> None:
        """Let time pass, timer by timer, and note after each what it has changed."""
        end_ms = self.clock.monotonic_ms() + ms
        while (due_ms := self.timer.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.monotonic_ms()))
            self.timer.advance()
            self.note_changes()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def who(self, line: Line) -> ProducerIdAndEpoch:
        known = self.producers.get(line.words[0], NO_PRODUCER)
        return ProducerIdAndEpoch(
            int(line.options.get("id", known.producer_id)), int(line.options.get("epoch", known.producer_epoch))
        )

    def answered(self, line: Line, api: str) -> Callable[[ErrorCode], None]:
        """A callback that must be called once."""
        name, is_answered = line.words[0], False

        def respond(error: ErrorCode) -> None:
            nonlocal is_answered
            assert not is_answered, f"{name} answered twice"
            is_answered = True
            self.say(f"{name} <- {api} {error.name}")

        return respond

    def show_log(self) -> None:
        for batch in list(self.log.read_all(0))[self._batches_shown :]:
            for record in batch.records():
                assert record.key is not None
                name = read_transaction_key(record.key)
                if record.value is None:
                    self.say(f"@{record.offset} {name} deleted")
                    continue
                value = read_transaction_value(record.value)
                partitions = " ".join(str(tp) for topic in value.partitions for tp in topic)
                started = "-" if value.start_timestamp_ms < 0 else value.start_timestamp_ms - START_MS
                self.say(
                    f"@{record.offset} {name} v{int.from_bytes(record.value[:2], 'big')} {value.state} "
                    f"{value.producer_id}/{value.producer_epoch} timeout={value.timeout_ms} started={started} "
                    f"at={value.last_update_timestamp_ms - START_MS} [{partitions}]"
                )
        self._batches_shown = len(self.log.batches.get(0, []))


def partitions_of(words: list[str]) -> list[TopicPartition]:
    return [TopicPartition(*split_partition(word)) for word in words]


def init(t: Transcript, line: Line) -> None:
    """init p [timeout=ms] [mine] [id= epoch=]: take an id and epoch; with `mine` or an id, present what one has."""
    name = line.words[0]
    presented = t.who(line) if "mine" in line.words or "id" in line.options else None

    def respond(error: ErrorCode, producer: ProducerIdAndEpoch) -> None:
        t.say(f"{name} <- InitProducerId {error.name} id={producer.producer_id} epoch={producer.producer_epoch}")
        if error == ErrorCode.NONE:
            t.producers[name] = producer

    transactional_id = {"null": None, "empty": ""}.get(name, name)
    timeout_ms = int(line.options.get("timeout", TIMEOUT_MS))
    t.coordinator.init_producer_id(transactional_id, timeout_ms, presented, respond)


def add(t: Transcript, line: Line) -> None:
    """add p t-0 t-1: partitions join the transaction."""
    partitions = partitions_of(line.words[1:])
    t.coordinator.add_partitions(line.words[0], t.who(line), partitions, t.answered(line, "AddPartitionsToTxn"))


def verify(t: Transcript, line: Line) -> None:
    """verify p t-0: is it part of the transaction?"""
    errors = t.coordinator.verify_partitions(line.words[0], t.who(line), partitions_of(line.words[1:]))
    found = " ".join(f"{tp}:{error.name}" for tp, error in errors.items())
    t.say(f"{line.words[0]} <- verified {found}")


def end(t: Transcript, line: Line) -> None:
    """end p commit | abort."""
    committed = line.words[1] == "commit"
    t.coordinator.end_transaction(line.words[0], t.who(line), committed, t.answered(line, "EndTxn"))


def describe(t: Transcript, line: Line) -> None:
    """describe p"""
    found = t.coordinator.describe(line.words[0])
    if found.error_code:
        t.say(f"{found.transactional_id}: {ErrorCode(found.error_code).name}")
        return
    partitions = " ".join(f"{topic.topic}-{index}" for topic in found.topics for index in topic.partitions)
    started = "-" if found.transaction_start_time_ms < 0 else found.transaction_start_time_ms - START_MS
    t.say(
        f"{found.transactional_id}: {found.transaction_state} {found.producer_id}/{found.producer_epoch} "
        f"timeout={found.transaction_timeout_ms} started={started} [{partitions}]"
    )


def list_transactions(t: Transcript, line: Line) -> None:
    """list [states=A,B] [ids=1,2] [duration=ms]"""
    request = ListTransactionsRequest(
        state_filters=line.options["states"].split(",") if "states" in line.options else [],
        producer_id_filters=[int(found) for found in line.options.get("ids", "").split(",") if found],
        duration_filter=int(line.options.get("duration", -1)),
    )
    response = run_through(t.coordinator.list(request))
    found = " ".join(f"{entry.transactional_id}:{entry.transaction_state}" for entry in response.transaction_states)
    unknown = f" unknown={','.join(response.unknown_state_filters)}" if response.unknown_state_filters else ""
    t.say(f"{ErrorCode(response.error_code).name} {found}{unknown}".rstrip())


def hold(t: Transcript, line: Line) -> None:
    """hold log | markers: nothing is answered there until `release`."""
    (t.log if line.words[0] == "log" else t.channel).hold = True


def release(t: Transcript, line: Line) -> None:
    """release log [ERROR] | release markers | release markers unanswered."""
    if line.words[0] == "markers":
        t.channel.release(answered="unanswered" not in line.words)
    else:
        t.log.hold = False
        t.log.release(ErrorCode[line.words[1]] if len(line.words) > 1 else ErrorCode.NONE)


def fail(t: Transcript, line: Line) -> None:
    """fail log ERROR | fail t-0 ERROR: appends there are refused. fail ids: there are no producer ids."""
    if line.words[0] == "ids":
        t.no_ids = True
    elif line.words[0] == "log":
        t.log.error = ErrorCode[line.words[1]]
    else:
        t.channel.errors[partitions_of(line.words[:1])[0]] = ErrorCode[line.words[1]]


def leader(t: Transcript, line: Line) -> None:
    """leader t-0 BROKER | none | deleted."""
    where = line.words[1]
    broker_id = None if where == "deleted" else -1 if where == "none" else int(where)
    t.channel.leaders[partitions_of(line.words[:1])[0]] = broker_id


def wait(t: Transcript, line: Line) -> None:
    """wait 3s: let time pass, and what is due happen."""
    t.pass_time(duration(line.words[0]))


def show_log(t: Transcript, line: Line) -> None:
    """log: what has been appended since it was last shown."""
    t.show_log()


def write(t: Transcript, line: Line) -> None:
    """write p STATE ID/EPOCH [t-0 ...]: a record of an earlier coordinator."""
    name, state, producer, *partitions = line.words
    producer_id, epoch = (int(part) for part in producer.split("/"))
    transit = TransitMetadata(
        producer_id=producer_id,
        last_producer_id=-1,
        producer_epoch=epoch,
        last_producer_epoch=-1,
        timeout_ms=TIMEOUT_MS,
        state=STATES_BY_NAME[state],
        topic_partitions=frozenset(partitions_of(partitions)),
        start_timestamp_ms=START_MS if partitions else -1,
        last_update_timestamp_ms=START_MS,
    )
    record = SimpleRecord(START_MS, transaction_key(name), transaction_value(transit))
    t.log.append(0, [record], lambda error, offset: None)
    t.producers[name] = ProducerIdAndEpoch(producer_id, epoch)


def restart(t: Transcript, line: Line) -> None:
    """restart: the process dies and another takes over with the same log."""
    t.epoch += 1
    t.log.forget_waiting()
    t.start()


def resign(t: Transcript, line: Line) -> None:
    """resign [epoch=N]: the partition's leader moves away."""
    t.epoch = int(line.options.get("epoch", t.epoch + 1))
    t.coordinator.on_resigned(0, t.epoch)


def elect(t: Transcript, line: Line) -> None:
    """elect [epoch=N]: the partition's leader is here."""
    t.epoch = int(line.options.get("epoch", t.epoch + 1))
    t.coordinator.on_elected(0, t.epoch)


def shutdown(t: Transcript, line: Line) -> None:
    """shutdown: the coordinator stops serving."""
    t.coordinator.shutdown()


COMMANDS: dict[str, Callable[[Transcript, Line], None]] = {
    "init": init,
    "add": add,
    "verify": verify,
    "end": end,
    "describe": describe,
    "list": list_transactions,
    "hold": hold,
    "release": release,
    "fail": fail,
    "leader": leader,
    "wait": wait,
    "log": show_log,
    "write": write,
    "restart": restart,
    "resign": resign,
    "elect": elect,
    "shutdown": shutdown,
}

if __name__ == "__main__":
    for file in sys.argv[1:]:
        rewrite(Path(file), Transcript().run)
