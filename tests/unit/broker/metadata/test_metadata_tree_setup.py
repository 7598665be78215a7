from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import zookeeper_settings
from odradek.broker.metadata import metadata_tree_setup
from odradek.broker.metadata.metadata_tree_setup import AWAY_TIMEOUT_S, WaitLimit, close_tree, open_metadata_tree
from odradek.controller.tree.metadata_tree import ConnectionLoss, Create, CreateMode, Exists, MetadataTree
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.simulation.environment.virtual_loop import VirtualLoop


def no_failure(error: BaseException) -> None:
    raise AssertionError from error


@async_test
async def test_embedded_metadata_is_this_brokers_alone_and_closed_with_its_tree(tmp_path: Path) -> None:
    config = BrokerConfig({"log.dirs": str(tmp_path / "logs")})
    tree = await open_metadata_tree(config, ManualClock(), no_failure)
    await tree.run(Create("/a"))
    await tree.run(Create("/b", mode=CreateMode.EPHEMERAL))
    with pytest.raises(ConnectionLoss, match="in use by a running broker"):
        await open_metadata_tree(config, ManualClock(), no_failure)
    await tree.close()

    again = await open_metadata_tree(config, ManualClock(), no_failure)
    assert await again.run(Exists("/a")) is not None
    assert await again.run(Exists("/b")) is None
    await again.close()


@async_test
async def test_zookeeper_is_opened_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(settings: ZooKeeperSettings) -> ZooKeeperSettings:
        return settings

    monkeypatch.setattr(ZooKeeperTree, "open", opened)
    config = BrokerConfig({"zookeeper.connect": "zk:2181"})
    assert await open_metadata_tree(config, ManualClock(), no_failure) == zookeeper_settings(config, None)  # type: ignore[comparison-overlap]


@async_test
async def test_the_tree_is_closed_after_the_final_writes_or_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_tree_setup, "FINAL_WRITES_TIMEOUT_S", 0.001)
    steps: list[str] = []
    is_closed = asyncio.Event()

    class Tree:
        is_disconnected = False

        async def close(self) -> None:
            steps.append("close")
            is_closed.set()

    async def say(*, waits: bool) -> None:
        if waits:
            await is_closed.wait()
        steps.append("said")

    tree = cast("MetadataTree", Tree())
    await close_tree(tree, WaitLimit(tree), say(waits=False))
    is_closed.clear()
    await close_tree(tree, WaitLimit(tree), say(waits=True))
    await close_tree(tree, WaitLimit(tree))
    assert steps == ["said", "close", "close", "said", "close"]


class AwayTree:
    """A tree that is not available in the given spans of time."""

    def __init__(self, *spans: tuple[float, float]) -> None:
        self.spans = spans

    @property
    def is_disconnected(self) -> bool:
        now = asyncio.get_running_loop().time()
        return any(begin <= now < end for begin, end in self.spans)


async def waited_s(wait_limit: WaitLimit, work: asyncio.Future[None], timeout_s: float = math.inf) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await wait_limit.wait(work, timeout_s)
    return loop.time() - began


def in_virtual_time(scenario: Callable[[float], Coroutine[object, object, None]]) -> None:
    loop = VirtualLoop(Random(1))
    try:
        loop.run_until_complete(scenario(loop.time()))
    finally:
        loop.close()


def test_patience_with_a_tree_that_is_disconnected_is_over_once_for_all() -> None:
    async def scenario(now: float) -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wait_limit = WaitLimit(cast("MetadataTree", AwayTree((now, math.inf))))
        assert await waited_s(wait_limit, never) == pytest.approx(AWAY_TIMEOUT_S, abs=0.11)
        assert await waited_s(wait_limit, never) == 0

    in_virtual_time(scenario)


def test_time_in_which_the_tree_answers_does_not_count() -> None:
    async def scenario(now: float) -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tree = AwayTree((now + 5, now + 6), (now + 20, math.inf))
        wait_limit = WaitLimit(cast("MetadataTree", tree))
        assert await waited_s(wait_limit, never) == pytest.approx(20 + AWAY_TIMEOUT_S - 1, abs=0.3)

    in_virtual_time(scenario)


def test_work_that_is_done_or_out_of_time_ends_the_wait() -> None:
    async def scenario(now: float) -> None:
        loop = asyncio.get_running_loop()
        wait_limit = WaitLimit(cast("MetadataTree", AwayTree()))
        work: asyncio.Future[None] = loop.create_future()
        loop.call_later(7, work.set_result, None)
        assert await waited_s(wait_limit, work, 3) == pytest.approx(3)
        assert await waited_s(wait_limit, work) == pytest.approx(4)
        assert await wait_limit.wait(work)

    in_virtual_time(scenario)
