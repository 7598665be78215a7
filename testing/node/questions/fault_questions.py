"""Questions about faults (`testing/faults.py`). Those that change something answer when the change is in force."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from odradek.testing.node.questions.questions import question

if TYPE_CHECKING:
    from odradek.broker.faults.faults import RuleStatus
    from odradek.broker.faults.record import FaultEvent, FaultRecord
    from odradek.testing.node.running.running_broker import RunningBroker


@question
async def add_fault(broker: RunningBroker, *, plain: dict[str, object]) -> int:
    return broker.server.faults.add(plain)


@question
async def remove_fault(broker: RunningBroker, *, number: int) -> None:
    broker.server.faults.remove(number)


@question
async def enable_fault(broker: RunningBroker, *, number: int, enabled: bool) -> None:
    broker.server.faults.enable(number, enabled=enabled)


@question
async def clear_faults(broker: RunningBroker) -> None:
    broker.server.faults.clear()


@question
async def fault_rules(broker: RunningBroker) -> list[RuleStatus]:
    return broker.server.faults.rules()


@question
async def fault_status(broker: RunningBroker, *, number: int) -> RuleStatus:
    return broker.server.faults.status(number)


@question
async def fault_events(broker: RunningBroker, *, number: int) -> list[FaultEvent]:
    return broker.server.faults.events(number)


@question
async def wait_fault(broker: RunningBroker, *, number: int, times: int, timeout_s: float) -> RuleStatus:
    """The state of the rule when it has fired so often, or when the time is over."""
    faults = broker.server.faults
    with contextlib.suppress(TimeoutError):  # the state says so
        await asyncio.wait_for(faults.wait_fired(number, times), timeout_s)
    return faults.status(number)


@question
async def fault_record(broker: RunningBroker) -> FaultRecord:
    return broker.server.faults.record()


@question
async def replay_faults(broker: RunningBroker, *, record: FaultRecord) -> None:
    broker.server.faults.replay(record)


@question
async def replay_difference(broker: RunningBroker) -> tuple[str | None, list[FaultEvent]]:
    """How the requests first differed from the record, and the events whose requests have not come."""
    faults = broker.server.faults
    return faults.difference, faults.unplayed
