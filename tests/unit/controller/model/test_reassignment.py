from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.reassignment import ReplicaAssignment

REPLICAS = st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True).map(tuple)


def test_a_move_to_other_brokers() -> None:
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((4, 5, 6))
    assert moving == ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert moving.origin_replicas == (1, 2, 3)
    assert moving.target_replicas == (4, 5, 6)
    assert moving.is_being_reassigned


def test_an_overlapping_move_forgets_the_original_order() -> None:
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 2))
    assert moving == ReplicaAssignment((3, 4, 2, 1), (4,), (1,))
    cancelled = moving.reassign_to(moving.origin_replicas)
    assert cancelled == ReplicaAssignment((3, 2, 1))
    assert not cancelled.is_being_reassigned


def test_a_superseding_move_drops_what_was_only_being_added() -> None:
    moving = ReplicaAssignment((1, 2)).reassign_to((3, 4)).reassign_to((4, 5))
    assert moving == ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))


def test_a_new_order_is_no_move() -> None:
    assert ReplicaAssignment((1, 2, 3)).reassign_to((3, 2, 1)) == ReplicaAssignment((3, 2, 1))


def test_adding_and_removing_one_replica() -> None:
    assert ReplicaAssignment((1,)).with_replica(2) == ReplicaAssignment((1, 2))
    assert ReplicaAssignment((3, 1), (3,), (1,)).remove_replica(3) == ReplicaAssignment((1,), (), (1,))


def test_text() -> None:
    text = str(ReplicaAssignment((3, 1), (3,), (1,)))
    assert text == "ReplicaAssignment(replicas=3,1, addingReplicas=3, removingReplicas=1)"


@given(original=REPLICAS, first=REPLICAS, second=REPLICAS)
def test_origin_and_target_survive_any_number_of_moves(
    original: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    moving = ReplicaAssignment(original)
    for target in (first, second):
        moving = moving.reassign_to(target)
        assert set(moving.origin_replicas) == set(original)
        assert moving.target_replicas == target
        assert moving.replicas[: len(target)] == target
        assert set(moving.replicas) == set(original) | set(target)
