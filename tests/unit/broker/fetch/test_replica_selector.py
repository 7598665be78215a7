"""The replica that a consumer should read from."""

from __future__ import annotations

import pytest

from odradek.broker.fetch.replica_selector import ClientMetadata, preferred_read_replica, rack_aware
from odradek.broker.metadata.metadata_cache import Node
from odradek.broker.partition.replica import Replica
from odradek.storage.offsets import LogOffsetMetadata

RACKS = {0: "a", 1: "b", 2: "b", 3: "c", 4: None}


def node(broker_id: int) -> Node | None:
    return Node(broker_id=broker_id, host="h", port=1, rack=RACKS[broker_id]) if broker_id in RACKS else None


def replica(broker_id: int, end: int | None, *, start: int = 0, caught_up_ms: int = 0) -> Replica:
    replica = Replica(broker_id)
    if end is not None:
        replica.log_end_offset = LogOffsetMetadata(end)
        replica.log_start_offset = start
    replica._last_caught_up_ms = caught_up_ms
    return replica


def preferred(
    rack: str, *replicas: Replica, offset: int = 5, isr: tuple[int, ...] = (0, 1, 2, 3, 4), leader: int = 0
) -> int | None:
    return preferred_read_replica(
        rack_aware,
        ClientMetadata(rack, "PLAINTEXT"),
        offset,
        leader=leader,
        replicas=replicas,
        isr=isr,
        node_of=node,
        now_ms=1_000,
    )


@pytest.mark.parametrize(
    ("rack", "expected"),
    [("a", None), ("b", 1), ("c", 3), ("d", None), ("", None)],
    ids=["the leader's", "one of two", "the only one", "nobody's", "none"],
)
def test_the_one_in_the_same_rack(rack: str, expected: int | None) -> None:
    assert preferred(rack, replica(1, 10), replica(2, 9), replica(3, 9), replica(4, 10)) == expected


def test_leader_in_the_same_rack_is_preferred_to_those_with_less() -> None:
    assert preferred("b", replica(2, 10), leader=1) is None


def test_highest_end_offset_then_latest_caught_up_then_larger_id() -> None:
    assert preferred("b", replica(1, 9), replica(2, 10)) == 2
    assert preferred("b", replica(1, 10, caught_up_ms=900), replica(2, 10, caught_up_ms=800)) == 1
    assert preferred("b", replica(1, 10, caught_up_ms=900), replica(2, 10, caught_up_ms=900)) == 2


def test_follower_out_of_sync_does_not_qualify() -> None:
    assert preferred("b", replica(1, 10), isr=(0,)) is None


@pytest.mark.parametrize(
    ("end", "start", "expected"), [(5, 5, 1), (4, 0, None), (6, 6, None), (None, 0, None), (9, -1, 1)]
)
def test_follower_has_to_have_the_offset(end: int | None, start: int, expected: int | None) -> None:
    assert preferred("b", replica(1, end, start=start)) == expected


def test_follower_that_cannot_be_reached_on_the_clients_listener_has_no_rack() -> None:
    assert preferred("b", replica(7, 10), isr=(0, 7)) is None
