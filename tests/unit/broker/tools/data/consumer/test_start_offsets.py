from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice, Origin
from odradek.broker.tools.data.consumer.start_offsets import find_offsets
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


async def found(cluster: DataCluster, choices: dict[TopicPartition, OffsetChoice]) -> dict[TopicPartition, int]:
    client = cluster.client()
    await client.refresh(["t"])
    return await find_offsets(client, choices, read_committed=True)


def filled() -> DataCluster:
    """Offsets 2 to 9 with the timestamps 20 to 90."""
    cluster = DataCluster()
    cluster.create("t", 2)
    cluster.log_starts[A] = 2
    for offset in range(2, 10):
        cluster.append(A, SimpleRecord(10 * offset, None, b"v"))
    return cluster


@pytest.mark.parametrize(
    ("choice", "offset"),
    [
        (BEGINNING, 2),
        (END, 10),
        (OffsetChoice(Origin.OFFSET, 7), 7),
        (OffsetChoice(Origin.TAIL, 3), 7),
        (OffsetChoice(Origin.TAIL, 100), 2),
        (OffsetChoice(Origin.TIMESTAMP, 45), 5),
        (OffsetChoice(Origin.TIMESTAMP, 91), 10),
    ],
)
def test_offsets(choice: OffsetChoice, offset: int) -> None:
    @virtual_test
    async def run() -> None:
        cluster = filled()
        assert await found(cluster, {A: choice}) == {A: offset}
        assert all(request.isolation_level == 1 for request in cluster.requests(ListOffsetsRequest))

    run()


@virtual_test
async def test_partitions_whose_leader_is_away_are_left_out() -> None:
    cluster = filled()
    client = cluster.client()
    await client.refresh(["t"])
    cluster.leaders[B] = 2
    assert await find_offsets(client, {A: END, B: END}, read_committed=False) == {A: 10}
    cluster.unreachable = {1}
    assert await find_offsets(client, {A: END}, read_committed=False) == {}
    cluster.leaders[A] = -1
    assert await found(cluster, {A: END}) == {}


@virtual_test
async def test_an_error_that_stays() -> None:
    cluster = filled()
    cluster.on(
        ListOffsetsRequest,
        lambda broker_id, request: ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name="t",
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=0, error_code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
                        )
                    ],
                )
            ]
        ),
    )
    with pytest.raises(CommandFailed, match="t-0: The message format version"):
        await found(cluster, {A: OffsetChoice(Origin.TIMESTAMP, 1)})
