from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata_tree_setup import open_metadata_tree
from odradek.broker.startup_error import StartupError
from odradek.controller.metadata_tree import ConnectionLoss, Create, CreateMode, Exists
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
async def test_zookeeper_is_not_joined_yet(tmp_path: Path) -> None:
    config = BrokerConfig({"log.dirs": str(tmp_path), "zookeeper.connect": "127.0.0.1:1"})
    with pytest.raises(StartupError, match=r"zookeeper\.connect"):
        await open_metadata_tree(config, ManualClock(), no_failure)
