from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.tree.metadata_tree import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataTree,
    Multi,
    MultiFailed,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    TreeError,
    WriteOperation,
)
from odradek.controller.znodes import znodes
from odradek.controller.znodes.fenced_writes import (
    TRANSACTION_BYTES_MAX,
    TRANSACTIONS_PER_BATCH_MAX,
    WRITES_PER_TRANSACTION_MAX,
    write_fenced,
)
from odradek.controller.znodes.metadata_client import MetadataClient, stat_of
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened(nodes={znodes.CONTROLLER_EPOCH: b"1"})


class Batches:
    """A tree that counts the operations of the batches it gets. `moved_at`: the batch that finds another controller."""

    def __init__(self, client: MetadataClient, moved_at: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self._client = client
        self._moved_at = moved_at

    async def submit(self, operations: Sequence[Operation[object]]) -> list[object | TreeError]:
        self.batches.append([len(cast("Multi", operation).operations) for operation in operations])
        if len(self.batches) == self._moved_at:
            await self._client.tree.run(SetData(znodes.CONTROLLER_EPOCH, b"2"))
        return await self._client.tree.submit(operations)


async def written(batches: Batches, operations: Sequence[WriteOperation]) -> list[object]:
    results = await write_fenced(cast("MetadataTree", batches), 0, operations)
    return [type(result) if isinstance(result, TreeError) else result for result in results]


@async_test
async def test_writes_fail_by_themselves() -> None:
    async with opened() as client:
        await client.create_recursive("/a")
        results = await write_fenced(client.tree, 0, [SetData("/a", b"", 3), SetData("/a", b""), Delete("/b")])
        assert isinstance(results[0], BadVersion)
        assert stat_of(results[1]).version == 1
        assert isinstance(results[2], NoNode)
        with pytest.raises(NoNode):
            await client.write(0, Delete("/b"))
        with pytest.raises(TypeError):
            stat_of(await client.write(0, Check("/a", 1)))


@async_test
async def test_writes_share_transactions() -> None:
    async with opened() as client:
        batches = Batches(client)
        count = WRITES_PER_TRANSACTION_MAX * TRANSACTIONS_PER_BATCH_MAX + 1
        names = [f"/{index:05}" for index in range(count)]
        assert await written(batches, [Create(name) for name in names]) == names
        full = 1 + WRITES_PER_TRANSACTION_MAX
        assert batches.batches == [[full] * TRANSACTIONS_PER_BATCH_MAX, [2]]
        assert await written(batches, []) == []


@async_test
async def test_a_transaction_has_a_largest_size() -> None:
    async with opened() as client:
        batches = Batches(client)
        data = bytes(TRANSACTION_BYTES_MAX // 2 - len("/a"))
        names = [f"/{name}" for name in "abcde"]
        assert await written(batches, [Create(name, data) for name in names]) == names
        assert batches.batches == [[3, 3, 2]]
        batches.batches.clear()
        await written(batches, [SetData("/a", data * 3), SetData("/b", b""), SetData("/c", data + b"x")])
        assert batches.batches == [[2, 3]]


@pytest.mark.parametrize("position", [0, 50, WRITES_PER_TRANSACTION_MAX - 1])
@async_test
async def test_one_refused_write_leaves_the_others_as_they_would_be_alone(position: int) -> None:
    async with opened() as client:
        batches = Batches(client)
        names = [f"/{index:03}" for index in range(3 * WRITES_PER_TRANSACTION_MAX)]
        await written(batches, [Create(name) for name in names])
        batches.batches.clear()
        writes: list[WriteOperation] = [SetData(name, b"x", 0) for name in names]
        refused = WRITES_PER_TRANSACTION_MAX + position
        writes[refused] = SetData(names[refused], b"x", 1)
        results = await write_fenced(cast("MetadataTree", batches), 0, writes)
        assert isinstance(results.pop(refused), BadVersion)
        assert [stat_of(result).version for result in results] == [1] * (len(names) - 1)
        full = 1 + WRITES_PER_TRANSACTION_MAX
        assert batches.batches == [[full] * 3, [2] * WRITES_PER_TRANSACTION_MAX]


@async_test
async def test_refusals_of_each_kind_in_one_transaction() -> None:
    async with opened() as client:
        await client.create_recursive("/a")
        writes = [Create("/a"), Create("/b"), Create("/b/c"), SetData("/none", b""), Check("/a", 4), Delete("/b/c")]
        expected = [NodeExists, "/b", "/b/c", NoNode, BadVersion, None]
        assert await written(Batches(client), writes) == expected
        assert await client.children("/b") == ()


@pytest.mark.parametrize("moved_at", [1, 2])
@async_test
async def test_a_replaced_controller_writes_nothing_more(moved_at: int) -> None:
    async with opened() as client:
        await client.create_recursive("/a")
        batches = Batches(client, moved_at)
        # The second batch applies the writes again one by one, because the first write is refused.
        with pytest.raises(ControllerMoved):
            await written(batches, [Create("/a"), Create("/b")])
        assert len(batches.batches) == moved_at
        assert not await client.exists("/b")


@async_test
async def test_other_errors_of_a_transaction_are_raised() -> None:
    class Refusing:
        async def submit(self, operations: Sequence[Operation[object]]) -> list[TreeError]:
            return [TreeError("/a", "no space")] * len(operations)

    with pytest.raises(TreeError, match="no space") as raised:
        await write_fenced(cast("MetadataTree", Refusing()), 0, [Create("/a"), Create("/b")])
    assert not isinstance(raised.value, MultiFailed)
