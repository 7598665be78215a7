from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.assignment import assign_replicas, rack_alternated
from odradek.controller.model.broker_info import Broker
from odradek.protocol.errors import ErrorCode, KafkaError


def brokers(*ids: int, racks: dict[int, str] | None = None) -> list[Broker]:
    return [Broker(broker_id, (), (racks or {}).get(broker_id)) for broker_id in ids]


def zero(_: int) -> int:
    return 0


def test_five_brokers_three_replicas() -> None:
    assignment = assign_replicas(brokers(0, 1, 2, 3, 4), 10, 3, zero)
    assert list(assignment.values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


RACKS = {0: "r1", 5: "r1", 3: "r2", 4: "r2", 1: "r3", 2: "r3"}


def test_brokers_alternate_between_racks() -> None:
    assert rack_alternated(RACKS) == [0, 3, 1, 5, 4, 2]
    assert rack_alternated({1: "b", 2: "a", 3: "a", 4: "a"}) == [2, 1, 3, 4]
    assert rack_alternated({}) == []


def test_three_racks_three_replicas() -> None:
    assignment = assign_replicas(brokers(*RACKS, racks=RACKS), 7, 3, zero)
    assert list(assignment.values()) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_start_and_shift_are_drawn_in_this_order() -> None:
    drawn = iter((2, 1))
    assignment = assign_replicas(brokers(0, 1, 2, 3), 2, 3, lambda below: next(drawn))
    assert list(assignment.values()) == [(2, 0, 1), (3, 1, 2)]


def test_one_broker() -> None:
    assert assign_replicas(brokers(7), 3, 1, zero) == {0: (7,), 1: (7,), 2: (7,)}


def test_added_partitions_continue_from_a_fixed_index() -> None:
    assignment = assign_replicas(brokers(0, 1, 2), 3, 2, zero, fixed_start_index=1, start_partition_id=2)
    assert assignment == {2: (0, 2), 3: (1, 2), 4: (2, 0)}


@pytest.mark.parametrize(
    ("partitions", "factor", "code", "message"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (
            1,
            3,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 3 larger than available brokers: 2.",
        ),
    ],
)
def test_what_cannot_be_assigned(partitions: int, factor: int, code: ErrorCode, message: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        assign_replicas(brokers(0, 1), partitions, factor, zero)
    assert (refusal.value.code, refusal.value.message) == (code, message)


def test_racks_are_for_all_brokers_or_for_none() -> None:
    with pytest.raises(KafkaError, match="Not all brokers have rack information"):
        assign_replicas(brokers(0, 1, racks={0: "r"}), 1, 1, zero)


@given(
    number=st.integers(1, 9),
    partitions=st.integers(1, 40),
    data=st.data(),
)
def test_replicas_are_distinct_and_spread(number: int, partitions: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, number))
    racks = data.draw(st.one_of(st.just({}), st.fixed_dictionaries({b: st.sampled_from("xyz") for b in range(number)})))
    drawn = data.draw(st.tuples(st.integers(0, number - 1), st.integers(0, number - 1)))
    numbers = iter(drawn)
    assignment = assign_replicas(brokers(*range(number), racks=racks), partitions, factor, lambda _: next(numbers))
    assert sorted(assignment) == list(range(partitions))
    leaders = [replicas[0] for replicas in assignment.values()]
    assert max(map(leaders.count, range(number))) - min(map(leaders.count, range(number))) <= 1
    for replicas in assignment.values():
        assert len(set(replicas)) == factor
        if racks:
            assert len({racks[r] for r in replicas}) == min(factor, len(set(racks.values())))
