"""Questions about the broker as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.node.questions import question

if TYPE_CHECKING:
    from odradek.testing.node.running_broker import RunningBroker


@question
async def failure_report(broker: RunningBroker) -> str:
    """The text about the broker in the report of a failed test."""
    partitions = broker.services.metadata_cache.snapshot.partitions
    return f"topics: {', '.join(sorted(partitions)) or 'none'}"


@question
async def reset(broker: RunningBroker) -> None:
    await broker.reset()
