"""Replays wheel.txt and compares the output with it."""

from __future__ import annotations

from pathlib import Path

from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from odradek.timer.task import TimerTask

TRANSCRIPT = Path(__file__).with_name("wheel.txt")


class Replay:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.tasks: dict[str, TimerTask] = {}
        self.ran: list[str] = []

    def run(self, command: str) -> list[str]:
        match command.split():
            case ["add", name, delay_ms]:
                self.tasks[name] = self.timer.schedule(int(delay_ms), lambda: self.ran.append(f"ran {name}"))
                return []
            case ["cancel", name]:
                self.tasks[name].cancel()
                return []
            case ["advance", ms]:
                self.clock.advance(int(ms))
                self.ran = []
                self.timer.advance()
                return self.ran
            case ["show"]:
                return self.show()
        raise ValueError(f"not a command: {command}")

    def show(self) -> list[str]:
        names = {task: name for name, task in self.tasks.items()}
        lines = []
        for state in self.timer.inspect():
            buckets = "".join(
                f" {place}:{','.join(names[task] for task in tasks)}" for place, tasks in state.buckets.items()
            )
            lines.append(f"level {state.level} tick {state.tick_ms} now {state.current_time_ms} |{buckets}")
        deadline_ms = self.timer.next_deadline_ms()
        return [*lines, f"next deadline {'none' if deadline_ms is None else deadline_ms}"]


def test_the_wheels_turn_as_written() -> None:
    replay = Replay()
    written = []
    happened = []
    for line in TRANSCRIPT.read_text().splitlines():
        written.append(line)
        if line.startswith("  "):
            continue
        happened.append(line)
        if line and not line.startswith("#"):
            happened += [f"  {event}" for event in replay.run(line)]
    assert happened == written
