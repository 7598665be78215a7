from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.balance.planner import Broker, Partition, imbalance, loads_of, make_plan

GIB = 2**30


def partition(number: int, *replicas: int, load: int, size: int | None = None, is_fixed: bool = False) -> Partition:
    return Partition(
        topic="t",
        partition=number,
        replicas=replicas,
        load=load,
        size=load if size is None else size,
        is_fixed=is_fixed,
    )


def brokers(number: int) -> list[Broker]:
    return [Broker(id=broker_id) for broker_id in range(number)]


def test_a_new_broker_gets_its_share() -> None:
    partitions = [partition(number, number % 2, load=GIB) for number in range(6)]
    plan = make_plan(brokers(3), partitions)
    assert plan.before == {0: 3 * GIB, 1: 3 * GIB, 2: 0}
    assert plan.after == {0: 2 * GIB, 1: 2 * GIB, 2: 2 * GIB}
    assert (len(plan.moves), plan.moved_bytes) == (2, 2 * GIB)
    assert (imbalance(plan.before), imbalance(plan.after)) == (1.5, 1.0)


def test_a_replica_keeps_its_place_in_the_list() -> None:
    leader = make_plan(brokers(3), [partition(0, 0, 1, load=10), partition(1, 0, 1, load=10)])
    assert leader.replicas() == {("t", 0): (2, 1)}
    follower = make_plan(brokers(3), [partition(0, 1, 0, load=10), partition(1, 1, 0, load=10)])
    assert follower.replicas() == {("t", 0): (1, 2)}


def test_what_is_equal_stays() -> None:
    assert make_plan(brokers(2), [partition(0, 0, load=5), partition(1, 1, load=5)]).moves == ()
    assert make_plan(brokers(2), [partition(0, 0, load=5)]).moves == ()  # the other broker would be as far above
    assert make_plan([], []).moves == ()
    assert make_plan(brokers(1), [partition(0, 0, load=0)]).moves == ()


def test_the_tolerance_is_the_end() -> None:
    partitions = [partition(number, 0 if number < 6 else 1, load=1) for number in range(11)]
    assert make_plan(brokers(2), partitions, tolerance=0.10).moves == ()
    uneven = [partition(number, 0 if number < 7 else 1, load=1) for number in range(11)]
    assert len(make_plan(brokers(2), uneven, tolerance=0.10).moves) == 1


def test_a_limit_of_bytes_takes_the_best_that_it_allows() -> None:
    partitions = [partition(0, 0, load=50), partition(1, 0, load=20), partition(2, 0, load=30)]
    assert [move.partition.partition for move in make_plan(brokers(2), partitions).moves] == [0]
    assert [move.partition.partition for move in make_plan(brokers(2), partitions, max_moved_bytes=49).moves] == [2]
    assert make_plan(brokers(2), partitions, max_moved_bytes=19).moves == ()
    assert make_plan(brokers(2), partitions, max_moves=0).moves == ()


def test_what_is_balanced_is_not_what_it_costs() -> None:
    partitions = [partition(0, 0, load=10, size=1_000), partition(1, 0, load=10, size=1)]
    plan = make_plan(brokers(2), partitions)
    assert (plan.after, len(plan.moves)) == ({0: 10, 1: 10}, 1)
    assert plan.moved_bytes == plan.moves[0].partition.size


def test_a_partition_that_is_fixed_counts_and_stays() -> None:
    partitions = [partition(0, 0, load=10, is_fixed=True), partition(1, 0, load=10)]
    assert [move.partition.partition for move in make_plan(brokers(2), partitions).moves] == [1]


def test_racks_are_kept_apart() -> None:
    racks = [Broker(id=0, rack="a"), Broker(id=1, rack="b"), Broker(id=2, rack="b")]
    plan = make_plan(racks, [partition(number, 0, 1, load=10) for number in range(4)])
    assert all(0 in replicas for replicas in plan.replicas().values())
    assert plan.after == {0: 40, 1: 20, 2: 20}


def test_a_broker_that_is_gone_keeps_its_replicas() -> None:
    plan = make_plan(brokers(2), [partition(0, 0, 9, load=10), partition(1, 0, 9, load=10)])
    assert plan.before == {0: 20, 1: 0}
    assert all(9 in replicas for replicas in plan.replicas().values())


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Broker], list[Partition]]:
    count = draw(st.integers(1, 6))
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=count, max_size=count))
    members = [Broker(id=broker_id, rack=rack) for broker_id, rack in enumerate(racks)]
    partitions = []
    for number in range(draw(st.integers(0, 12))):
        replicas = draw(st.lists(st.integers(0, count), min_size=1, max_size=count, unique=True))  # one may be gone
        load, size = draw(st.integers(0, 1_000)), draw(st.integers(0, 1_000))
        partitions.append(partition(number, *replicas, load=load, size=size, is_fixed=draw(st.booleans())))
    return members, partitions


@given(clusters(), st.none() | st.integers(0, 3_000), st.none() | st.integers(0, 5))
def test_no_plan_harms(
    cluster: tuple[list[Broker], list[Partition]], max_moved_bytes: int | None, max_moves: int | None
) -> None:
    members, partitions = cluster
    plan = make_plan(members, partitions, max_moved_bytes=max_moved_bytes, max_moves=max_moves)
    racks: dict[int, str | int] = {each.id: each.rack if each.rack is not None else each.id for each in members}
    by_name = {each.name: each for each in partitions}
    changed = plan.replicas()
    for name, replicas in changed.items():
        before = by_name[name].replicas
        assert not by_name[name].is_fixed
        assert len(set(replicas)) == len(replicas) == len(before)
        assert set(replicas) - set(before) <= racks.keys()
        assert len({racks.get(each, each) for each in replicas}) >= len({racks.get(each, each) for each in before})
    # What the plan says is what its replicas make.
    copied = sum(by_name[name].size * len(set(found) - set(by_name[name].replicas)) for name, found in changed.items())
    assert plan.moved_bytes == copied
    moved = [
        partition(each.partition, *changed.get(each.name, each.replicas), load=each.load, size=each.size)
        for each in partitions
    ]
    assert plan.before == loads_of(members, partitions)
    assert plan.after == loads_of(members, moved)
    assert max_moved_bytes is None or copied <= max_moved_bytes
    assert max_moves is None or len(plan.moves) <= max_moves
    assert imbalance(plan.after) <= imbalance(plan.before)
    assert max(plan.after.values()) <= max(plan.before.values())
    assert min(plan.after.values()) >= min(plan.before.values())
    assert bool(plan.moves) == (sum(n * n for n in plan.after.values()) < sum(n * n for n in plan.before.values()))
