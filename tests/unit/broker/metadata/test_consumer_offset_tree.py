from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from odradek.broker.metadata.consumer_offset_tree import ZnodeOffsets
from odradek.controller.tree.embedded_tree import EmbeddedTree, TreeDatabase
from odradek.controller.tree.metadata_tree import ConnectionLoss, Create, Operation
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

ResultT = TypeVar("ResultT")

PARTITION = TopicPartition("t", 3)
PATH = "/consumers/g/offsets/t/3"


class _Offsets(ZnodeOffsets):
    """Waits for the answers."""

    def __init__(self, tree: EmbeddedTree) -> None:
        super().__init__(MetadataClient(tree), self._spawn_task)

    def _spawn_task(self, work: Coroutine[object, object, None]) -> None:
        self.task = asyncio.get_running_loop().create_task(work)

    async def store(self, offset: int, group: str = "g") -> ErrorCode:
        answers: list[ErrorCode] = []
        self.set_or_create(group, PARTITION, offset, answers.append)
        await self.task
        (answer,) = answers
        return answer

    async def read(self, group: str = "g") -> tuple[ErrorCode, int | None]:
        answers: list[tuple[ErrorCode, int | None]] = []
        self.get(group, PARTITION, lambda error, offset: answers.append((error, offset)))
        await self.task
        (answer,) = answers
        return answer


@asynccontextmanager
async def opened() -> AsyncIterator[EmbeddedTree]:
    database = await TreeDatabase.open(":memory:", ManualClock(1000))
    try:
        yield await database.connect()
    finally:
        await database.close()


def before(tree: EmbeddedTree, path: str, act: Callable[[], Coroutine[object, object, None]]) -> None:
    """Another client acts just before this one creates `path`."""
    run = tree.run

    async def racing(operation: Operation[ResultT]) -> ResultT:
        if isinstance(operation, Create) and operation.path == path:
            await act()
        return await run(operation)

    tree.run = racing  # type: ignore[method-assign]


@async_test
async def test_first_offset_of_a_group_creates_its_nodes_and_the_next_one_replaces_it() -> None:
    async with opened() as tree:
        offsets = _Offsets(tree)
        assert await offsets.read() == (ErrorCode.NONE, None)
        assert await offsets.store(42) == ErrorCode.NONE
        assert await offsets.read() == (ErrorCode.NONE, 42)
        assert await offsets.store(7) == ErrorCode.NONE
        node = await MetadataClient(tree).get(PATH)
        assert node is not None
        assert (node.data, node.stat.version) == (b"7", 1)


@async_test
async def test_offset_is_stored_although_another_client_creates_the_node_meanwhile() -> None:
    async with opened() as tree:
        other = await tree._database.connect()
        await MetadataClient(tree).create_recursive("/consumers/g/offsets/t")

        async def create_first() -> None:
            await MetadataClient(other).create_recursive(PATH, b"1")

        before(tree, PATH, create_first)
        offsets = _Offsets(tree)
        assert await offsets.store(42) == ErrorCode.NONE
        assert await offsets.read() == (ErrorCode.NONE, 42)


@async_test
async def test_node_without_data_holds_no_offset() -> None:
    async with opened() as tree:
        await MetadataClient(tree).create_recursive(PATH)
        assert await _Offsets(tree).read() == (ErrorCode.NONE, None)


@pytest.mark.parametrize("data", [b"many", b"", b"1_000", b" 5 ", b"\xff", b"9223372036854775808", b"9" * 5_000])
@async_test
async def test_node_that_holds_no_number_of_64_bits_is_an_error(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as tree:
        await MetadataClient(tree).create_recursive(PATH, data)
        with caplog.at_level(logging.ERROR, "odradek.broker.metadata.consumer_offset_tree"):
            assert await _Offsets(tree).read() == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert PATH in caplog.text


@pytest.mark.parametrize("offset", [2**63 - 1, -(2**63), 0])
@async_test
async def test_every_number_of_64_bits_is_an_offset(offset: int) -> None:
    async with opened() as tree:
        offsets = _Offsets(tree)
        assert await offsets.store(offset) == ErrorCode.NONE
        assert await offsets.read() == (ErrorCode.NONE, offset)


@async_test
async def test_group_with_a_long_path_is_answered() -> None:
    async with opened() as tree:
        offsets = _Offsets(tree)
        group = "a/" * 1_000 + "a"
        assert await offsets.store(42, group) == ErrorCode.NONE
        assert await offsets.read(group) == (ErrorCode.NONE, 42)


@async_test
async def test_any_failure_is_answered() -> None:
    async with opened() as tree:

        async def fail(operation: Operation[ResultT]) -> ResultT:
            raise RuntimeError("a bug")

        tree.run = fail  # type: ignore[method-assign]
        assert await _Offsets(tree).store(1) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await _Offsets(tree).read() == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


@async_test
async def test_tree_that_cannot_be_reached_is_an_error_and_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as tree:

        async def lost(operation: Operation[ResultT]) -> ResultT:
            raise ConnectionLoss(PATH)

        tree.run = lost  # type: ignore[method-assign]
        with caplog.at_level(logging.ERROR, "odradek.broker.metadata.consumer_offset_tree"):
            assert await _Offsets(tree).store(1) == ErrorCode.UNKNOWN_SERVER_ERROR
            assert await _Offsets(tree).read() == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert caplog.text.count(PATH) >= 2
