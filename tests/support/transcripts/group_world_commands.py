"""Commands of a group transcript about everything around the groups: time, the log, the leader, the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.records import offset_commit_key, offset_commit_value
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.system_timer import SystemTimer
from tests.support.transcripts.group_member_commands import heartbeat
from tests.support.transcripts.group_notation import START_MS, Line, duration, show_record

if TYPE_CHECKING:
    from tests.support.transcripts.group_transcript import Command, Transcript

FILLER_VALUE = offset_commit_value(OffsetAndMetadata(offset=0, commit_timestamp_ms=START_MS))


def config(transcript: Transcript, line: Line) -> None:
    """config group_max_size=2 ...: start over with these settings."""
    defaults = {"group_initial_rebalance_delay_ms": 0}
    values = defaults | {key: int(value) for key, value in line.options.items()}
    transcript.config = GroupConfig(**values)
    transcript.coordinator.shutdown()
    restart(transcript, line)


def wait(transcript: Transcript, line: Line) -> None:
    """wait 3s | 500ms [alive=m1,m2 beat=1s]: let time pass, with heartbeats of some, and what is due happen."""
    left_ms = duration(line.words[0])
    beat_ms = duration(line.options.get("beat", "1s"))
    alive = line.options["alive"].split(",") if "alive" in line.options else []
    while alive and left_ms > beat_ms:
        transcript.pass_time(beat_ms)
        left_ms -= beat_ms
        said = len(transcript.said)
        for name in alive:
            heartbeat(transcript, Line("heartbeat", [name]))
        del transcript.said[said:]
    transcript.pass_time(left_ms)


def hold(transcript: Transcript, line: Line) -> None:
    """hold: appends are not committed until `release`."""
    transcript.log.hold = True


def release(transcript: Transcript, line: Line) -> None:
    """release [ERROR]: commit or fail all appends held back, and stop holding."""
    transcript.log.hold = False
    transcript.log.release(ErrorCode[line.words[0]] if line.words else ErrorCode.NONE)


def fail(transcript: Transcript, line: Line) -> None:
    """fail ERROR | fail NONE: appends are refused with the error."""
    transcript.log.error = ErrorCode[line.words[0]]


def offline(transcript: Transcript, line: Line) -> None:
    """offline: this broker has no replica of the partition any more, though nobody has told the coordinator."""
    transcript.log.missing.add(0)


def fill(transcript: Transcript, line: Line) -> None:
    """fill 1000: as many offsets of a group `filler`, so that the log takes a while to load."""
    offsets = [
        SimpleRecord(START_MS, offset_commit_key("filler", TopicPartition("f", index)), FILLER_VALUE)
        for index in range(int(line.words[0]))
    ]
    transcript.log.append(0, offsets, lambda error, offset: None)
    transcript.batches_shown += 1


def log(transcript: Transcript, line: Line) -> None:
    """log: what has been appended since it was last shown."""
    batches = transcript.log.batches.get(0, [])
    for batch in list(transcript.log.read_all(0))[transcript.batches_shown :]:
        mark = " transactional" if batch.is_transactional else ""
        if batch.is_control:
            transcript.say(f"@{batch.base_offset} marker of producer {batch.producer_id}")
            continue
        for record in batch.records():
            assert record.key is not None
            transcript.say(f"@{record.offset}{mark} {show_record(record.key, record.value)}")
    transcript.batches_shown = len(batches)


def restart(transcript: Transcript, line: Line) -> None:
    """restart: the process dies and another takes over with the same log. Parked requests are lost."""
    transcript.timer = SystemTimer(transcript.clock)
    transcript.states = {}
    transcript.epoch += 1
    for client in transcript.clients.values():
        client.pending = 0
    transcript.start()
    transcript.coordinator.on_elected(0, transcript.epoch)


def resign(transcript: Transcript, line: Line) -> None:
    """resign [epoch=N]: the partition's leader moves away."""
    transcript.epoch = int(line.options.get("epoch", transcript.epoch + 1))
    transcript.coordinator.on_resigned(0, transcript.epoch)


def elect(transcript: Transcript, line: Line) -> None:
    """elect [epoch=N]: the partition's leader is here again."""
    transcript.epoch = int(line.options.get("epoch", transcript.epoch + 1))
    transcript.coordinator.on_elected(0, transcript.epoch)


def waiting(transcript: Transcript, line: Line) -> None:
    """waiting: sessions and barriers that wait, and clients that have not been answered."""
    unanswered = [client.name for client in transcript.clients.values() if client.pending]
    transcript.say(f"{transcript.coordinator.waiting_count} waiting, unanswered: {' '.join(unanswered) or 'nobody'}")


COMMANDS: dict[str, Command] = {
    "config": config,
    "wait": wait,
    "hold": hold,
    "release": release,
    "fail": fail,
    "offline": offline,
    "fill": fill,
    "log": log,
    "restart": restart,
    "resign": resign,
    "elect": elect,
    "waiting": waiting,
}
