"""Questions of scenarios (`testing/scenarios/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.node.questions.questions import question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.testing.node.running.running_broker import RunningBroker


@question
async def add_faults(broker: RunningBroker, *, rules: Sequence[dict[str, object]]) -> list[int]:
    """Put all of the rules in force, in order, or none. Returns their numbers. Raises: RuleError."""
    return broker.server.faults.add_all(rules)


@question
async def remove_faults(broker: RunningBroker, *, numbers: Sequence[int]) -> None:
    for number in numbers:
        broker.server.faults.remove(number)


@question
async def set_disk(broker: RunningBroker, *, is_full: bool, sync_ms: int) -> None:
    """Have the disk take nothing more, or take its time to sync, from now on."""
    broker.files.is_full = is_full
    broker.files.sync_ms = sync_ms


@question
async def disk_state(broker: RunningBroker) -> tuple[bool, int]:
    """Whether the disk is full, and how long a sync takes in ms."""
    return broker.files.is_full, broker.files.sync_ms
