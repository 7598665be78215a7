from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.consumer.fetcher import Chunk, FetchConfig, Fetcher, PartitionState
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice, Origin
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Reader:
    """A fetcher with its partitions, and what it hands out."""

    def __init__(self, cluster: DataCluster, fetcher: Fetcher) -> None:
        self.cluster = cluster
        self.fetcher = fetcher

    @classmethod
    async def of(
        cls,
        cluster: DataCluster,
        *states: PartitionState,
        config: FetchConfig = FetchConfig(),  # noqa: B008
    ) -> Reader:
        client = cluster.client()
        await client.refresh({state.topic_partition.topic for state in states})
        fetcher = Fetcher(client, config)
        fetcher.assign(states)
        return cls(cluster, fetcher)

    async def poll(self) -> Chunk | None:
        return await self.fetcher.poll(1000)

    async def values(self, polls: int = 20) -> list[bytes | None]:
        """What some polls hand out."""
        found = []
        for _ in range(polls):
            chunk = await self.poll()
            if chunk is not None:
                found += [each.record.value for each in chunk.records]
                chunk.state.consumed = chunk.next_offset
        return found


def at(key: TopicPartition, offset: int | None = 0, start: OffsetChoice = BEGINNING) -> PartitionState:
    return PartitionState(key, start, position=offset)


def filled(*values: bytes, partitions: int = 1) -> DataCluster:
    cluster = DataCluster()
    cluster.create("t", partitions)
    cluster.fill("t", *values)
    return cluster


@virtual_test
async def test_records_come_in_order() -> None:
    cluster = filled(b"a", b"b", b"c")
    reader = await Reader.of(cluster, at(A))
    assert await reader.values() == [b"a", b"b", b"c"]
    cluster.fill("t", b"d")
    assert await reader.values(3) == [b"d"]
    await reader.fetcher.close()


@virtual_test
async def test_a_large_batch_comes_in_pieces_and_the_partition_is_fetched_when_it_is_used_up() -> None:
    cluster = DataCluster()
    cluster.create("t")
    cluster.append(A, *[SimpleRecord(1, None, b"%d" % number) for number in range(5)])
    reader = await Reader.of(cluster, at(A), config=FetchConfig(max_poll_records=2))
    sizes = []
    for _ in range(3):
        chunk = await reader.poll()
        assert chunk is not None
        sizes.append((len(chunk.records), chunk.next_offset))
        chunk.state.consumed = chunk.next_offset
        if len(sizes) < 3:
            assert len(cluster.requests(FetchRequest)) == 1
    assert sizes == [(2, 2), (2, 4), (1, 5)]
    await reader.fetcher.close()


@virtual_test
async def test_positions_are_looked_up() -> None:
    cluster = filled(b"a", b"b", b"c")
    reader = await Reader.of(cluster, at(A, None, OffsetChoice(Origin.TAIL, 2)))
    assert await reader.values() == [b"b", b"c"]
    await reader.fetcher.close()


@virtual_test
async def test_it_stops_at_the_end_of_a_partition() -> None:
    cluster = DataCluster()
    cluster.create("t")
    cluster.append(A, *[SimpleRecord(1, None, b"%d" % number) for number in range(5)])
    state = at(A)
    state.end = 3
    reader = await Reader.of(cluster, state)
    assert await reader.values(3) == [b"0", b"1", b"2"]
    assert state.is_finished
    assert state.consumed == 3
    assert len(cluster.requests(FetchRequest)) == 1
    await reader.fetcher.close()


@virtual_test
async def test_a_leader_that_moves_or_dies_is_followed() -> None:
    cluster = filled(b"a")
    reader = await Reader.of(cluster, at(A))
    assert await reader.values(2) == [b"a"]
    cluster.leaders[A] = 2
    cluster.fill("t", b"b")
    assert await reader.values(5) == [b"b"]
    cluster.leaders[A] = 1
    cluster.unreachable = {2}
    cluster.fill("t", b"c")
    assert await reader.values(5) == [b"c"]
    await reader.fetcher.close()


@virtual_test
async def test_an_offset_that_is_gone_is_reset() -> None:
    cluster = filled(b"a", b"b", b"c")
    cluster.log_starts[A] = 2
    reader = await Reader.of(cluster, at(A), config=FetchConfig(auto_offset_reset=BEGINNING))
    assert await reader.values() == [b"c"]
    await reader.fetcher.close()
    reader = await Reader.of(cluster, at(A), config=FetchConfig(auto_offset_reset=END))
    assert await reader.values() == []
    cluster.fill("t", b"d")
    assert await reader.values() == [b"d"]
    await reader.fetcher.close()
    reader = await Reader.of(cluster, at(A))
    with pytest.raises(CommandFailed, match=r"t-0: offset 0 is not in the log, and auto.offset.reset is none"):
        await reader.values()
    await reader.fetcher.close()


@virtual_test
async def test_partitions_that_are_taken_away_give_nothing_more() -> None:
    cluster = filled(b"a", b"b", partitions=2)
    cluster.fill("t", b"x", b"y", partition=1)
    reader = await Reader.of(cluster, at(A), at(B))
    first = await reader.poll()
    assert first is not None
    reader.fetcher.assign([at(B, 1)])
    assert await reader.values() == [b"y"]
    await reader.fetcher.close()


@virtual_test
async def test_partitions_of_both_leaders_are_fetched() -> None:
    cluster = filled(b"a", partitions=2)
    cluster.leaders[B] = 2
    cluster.fill("t", b"b", partition=1)
    reader = await Reader.of(cluster, at(A))
    reader.fetcher.add([at(B)])
    assert sorted(await reader.values()) == [b"a", b"b"]  # type: ignore[type-var]
    await reader.fetcher.close()


@virtual_test
async def test_records_that_cannot_be_read_end_it() -> None:
    cluster = filled(b"a", b"b")
    cluster.logs[A][1][-1] ^= 1
    reader = await Reader.of(cluster, at(A))
    with pytest.raises(CommandFailed, match="t-0: the records from offset 1 on cannot be read: Record is corrupt"):
        await reader.values()
    await reader.fetcher.close()


def with_answer(cluster: DataCluster, **fields: object) -> None:
    """Set these fields in what is answered for each partition."""

    def fetch(broker_id: int, request: FetchRequest) -> FetchResponse:
        response = cluster.fetch(broker_id, request)
        for name, value in fields.items():
            setattr(response.responses[0].partitions[0], name, value)
        return response

    cluster.on(FetchRequest, fetch)


@virtual_test
async def test_an_error_that_stays() -> None:
    cluster = filled(b"a")
    with_answer(cluster, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    reader = await Reader.of(cluster, at(A))
    with pytest.raises(CommandFailed, match="t-0: Topic authorization failed"):
        await reader.values()
    await reader.fetcher.close()


@virtual_test
async def test_a_follower_that_the_leader_names_is_read_from() -> None:
    cluster = filled(b"a")

    def fetch(broker_id: int, request: FetchRequest) -> FetchResponse:
        cluster.leaders[A] = broker_id  # the follower answers, too
        response = cluster.fetch(broker_id, request)
        if broker_id == 1:
            response.responses[0].partitions[0].preferred_read_replica = 2
        return response

    cluster.on(FetchRequest, fetch)
    reader = await Reader.of(cluster, at(A), config=FetchConfig(client_rack="r"))
    assert await reader.values(4) == [b"a"]
    assert [node for node, request in cluster.asked if isinstance(request, FetchRequest)][:2] == [1, 2]
    assert cluster.requests(FetchRequest)[0].rack_id == "r"
    await reader.fetcher.close()
