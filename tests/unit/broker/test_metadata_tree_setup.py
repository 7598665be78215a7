from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from odradek.broker import metadata_tree_setup
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata_tree_setup import close_tree, open_metadata_tree
from odradek.broker.zookeeper_config import zookeeper_settings
from odradek.controller.metadata_tree import ConnectionLoss, Create, CreateMode, Exists, MetadataTree
from odradek.controller.zookeeper_settings import ZooKeeperSettings
from odradek.controller.zookeeper_tree import ZooKeeperTree
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test


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
    assert await open_metadata_tree(config, ManualClock(), no_failure) == zookeeper_settings(config)  # type: ignore[comparison-overlap]


@async_test
async def test_the_tree_is_closed_after_the_last_words_or_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_tree_setup, "LAST_WORDS_TIMEOUT_S", 0.001)
    steps: list[str] = []
    is_closed = asyncio.Event()

    class Tree:
        async def close(self) -> None:
            steps.append("close")
            is_closed.set()

    async def say(*, waits: bool) -> None:
        if waits:
            await is_closed.wait()
        steps.append("said")

    tree = cast("MetadataTree", Tree())
    await close_tree(tree, say(waits=False))
    is_closed.clear()
    await close_tree(tree, say(waits=True))
    await close_tree(tree)
    assert steps == ["said", "close", "close", "said", "close"]
