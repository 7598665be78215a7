from __future__ import annotations

import pytest

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderRecoveryState

CURRENT = LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=5, partition_epoch=9)


def test_every_new_leadership_has_the_next_leader_epoch_and_the_same_partition_epoch() -> None:
    assert CURRENT.with_new_leader(2) == CURRENT._replace(leader=2, leader_epoch=6)
    assert CURRENT.with_new_leader_and_isr(2, (2,)) == CURRENT._replace(leader=2, isr=(2,), leader_epoch=6)
    assert CURRENT.with_new_epoch() == CURRENT._replace(leader_epoch=6)
    assert CURRENT.with_partition_epoch(10) == CURRENT._replace(partition_epoch=10)


@pytest.mark.parametrize(
    ("proposed", "is_same"),
    [
        (CURRENT, True),
        (CURRENT._replace(partition_epoch=8), True),
        (CURRENT._replace(partition_epoch=10), False),
        (CURRENT._replace(isr=(2, 1)), False),
        (CURRENT._replace(leader=2), False),
        (CURRENT._replace(leader_epoch=4), False),
        (CURRENT._replace(leader_recovery_state=LeaderRecoveryState.RECOVERING), False),
    ],
)
def test_a_repeated_proposal_may_know_an_older_partition_epoch(proposed: LeaderAndIsr, is_same: bool) -> None:
    assert proposed.equals_allow_stale_partition_epoch(CURRENT) is is_same
