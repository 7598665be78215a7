"""Questions about the broker as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.node.questions.questions import question

if TYPE_CHECKING:
    from odradek.testing.node.running.running_broker import RunningBroker


@question
async def advance_clock(broker: RunningBroker, ms: int) -> None:
    """Raises: ValueError."""
    await broker.advance(ms)


@question
async def time_of_clock(broker: RunningBroker) -> int:
    return broker.clock.time_ms()


@question
async def reset(broker: RunningBroker) -> None:
    await broker.reset()
