"""The cost of a fetch: while most of its partitions do not change, and in turns of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.partition.partition import LogReadInfo, Partition
from odradek.broker.replication.fetch_session_handler import PartitionRequest
from odradek.broker.replication.replica_fetcher import ReplicaFetcher
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.in_process.loop_turns import most_in_a_turn
from tests.support.in_process.replication.following import FOLLOWER_ID, Following
from tests.support.in_process.replication.replicas import TP


@async_test
async def test_a_fetch_checks_only_changes_on_both_sides(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [TopicPartition("t", index) for index in range(5)]
    for tp in partitions:
        following.lead(tp)
        following.append(b"a", tp=tp)
    await following.turns()
    await following.advance(500)
    asked: list[int] = []
    read: list[int] = []
    request_of, read_of = ReplicaFetcher._partition_request, Partition.read

    def counted_request(self: ReplicaFetcher, tp: TopicPartition, now_ms: int) -> PartitionRequest | None:
        asked.append(tp.partition)
        return request_of(self, tp, now_ms)

    def counted_read(self: Partition, **arguments: object) -> LogReadInfo:
        read.append(self.topic_partition.partition)
        return read_of(self, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ReplicaFetcher, "_partition_request", counted_request)
    monkeypatch.setattr(Partition, "read", counted_read)
    before = len(following.link.fetches)
    for _ in range(3):
        await following.advance(500)
    assert (len(following.link.fetches) - before, asked, read) == (3, [], [])
    following.append(b"b", tp=partitions[2])
    await following.turns()
    await following.advance(500)
    assert (set(asked), set(read)) == ({2}, {2})
    assert following.log(partitions[2]).high_watermark == 2


@async_test
async def test_the_fetch_names_the_followers_log_start(following: Following) -> None:
    following.lead()
    following.append(b"a", b"b")
    await following.turns()
    await following.advance(500)
    following.log().maybe_increment_log_start_offset(1, "retention")
    await following.advance(500)
    (asked,) = following.link.fetches[-1].topics[0].partitions
    assert asked.log_start_offset == 1
    replica = following.leader.manager.partition(TP).in_sync.replicas[FOLLOWER_ID]
    assert replica.log_start_offset == 1


@async_test
async def test_many_logs_are_cut_with_turns_for_others(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another broker has died, thousands of logs without records are followed in the same moment."""
    following.lead()
    await following.turns()
    ((_, fetcher),) = following.fetchers.running
    partitions = [TopicPartition("t", index) for index in range(1, 3 * ITEMS_A_TURN)]
    for tp in partitions:
        fetcher.states.add(tp, leader_epoch=0, latest_epoch=-1, end_offset=0, watermark=0)
    cut: list[TopicPartition] = []

    async def noted(self: ReplicaFetcher, tp: TopicPartition, *rest: object) -> bool:
        cut.append(tp)
        return True

    monkeypatch.setattr(ReplicaFetcher, "_cut", noted)
    assert await most_in_a_turn(fetcher._cut_to_high_watermarks(), lambda: len(cut)) <= ITEMS_A_TURN
    assert cut == partitions


@async_test
async def test_records_that_come_alone_are_appended_in_the_turn_in_which_they_come(following: Following) -> None:
    following.lead()
    await following.turns()
    in_the_next_turn: list[int] = []

    def change(_: Request, response: Response) -> Response:
        asyncio.get_running_loop().call_soon(lambda: in_the_next_turn.append(following.log().log_end_offset))
        return response

    following.link.change = change
    following.append(b"a")
    await following.turns()
    assert in_the_next_turn == [1]
