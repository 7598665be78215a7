from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.testing.errors import WaitTimedOut
from tests.support.in_process.in_process_broker import Waiting
from tests.support.in_process.observed_broker import ObservedBroker
from tests.support.in_process.observed_groups import (
    commit,
    have_coordinator,
    join_fields,
    joined,
    sync_fields,
)


def test_waiting_for_a_state(observed: ObservedBroker) -> None:
    have_coordinator(observed)
    waiting: list[Waiting] = []

    def sync() -> None:
        answer: Any = waiting[0].answer
        observed.dispatch(ApiKey.SYNC_GROUP, 2, **sync_fields(answer.member_id, answer.generation_id))

    observed.meanwhile(
        lambda: waiting.append(observed.dispatch(ApiKey.JOIN_GROUP, 2, **join_fields())),
        lambda: observed.inner.clock.advance(1) or observed.inner.server.timer.advance(),  # type: ignore[func-returns-value, union-attr]
        sync,
    )
    assert observed.group("g").wait_for_state("Stable", members=1).generation == 1


def test_a_wait_that_times_out_shows_the_group(observed: ObservedBroker) -> None:
    member_id = joined(observed)
    observed.inner.loop.run_until_complete(_turn(lambda: commit(observed, 0)))
    with pytest.raises(WaitTimedOut) as error:
        observed.group("g").wait_for_state("Empty", timeout=0.01)
    assert str(error.value).splitlines() == [
        "Waited 0.01 s for group g to be Empty: g: Stable, generation 1, 1 members, lag 0",
        f"  member {member_id} at 10.0.0.7: t [0]",
        f"  rebalance to generation 1: {observed.group('g').history[0].reason}",
    ]
    with pytest.raises(WaitTimedOut, match="to be Stable with 2 members: there is no such group; there are: g"):
        observed.group("h").wait_for_state("Stable", members=2, timeout=0.01)


async def _turn(action: Any) -> None:
    action()


def test_a_misspelt_state_is_refused(observed: ObservedBroker) -> None:
    with pytest.raises(
        ValueError, match="There is no state of a group 'stable'; Kafka's names are: CompletingRebalance, "
    ):
        observed.group("g").wait_for_state("stable")
