from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata_tree_setup import open_metadata_tree, zookeeper_settings
from odradek.broker.startup_error import StartupError
from odradek.controller.metadata_tree import ConnectionLoss, Create, CreateMode, Exists
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


def zookeeper_config(**settings: str) -> BrokerConfig:
    keys = {"zookeeper." + name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig({"zookeeper.connect": "zk:2181", **keys})


def test_the_session_timeout_is_the_default_of_the_connection_timeout() -> None:
    plain = zookeeper_settings(zookeeper_config())
    assert plain == ZooKeeperSettings(hosts="zk:2181")
    assert (plain.session_timeout_ms, plain.connection_timeout_ms) == (18_000, 18_000)
    assert zookeeper_settings(zookeeper_config(session_timeout_ms="6000")).connection_timeout_ms == 6_000


def test_the_keys_of_zookeeper() -> None:
    config = zookeeper_config(
        connect="a:1,b:2/kafka",
        connection_timeout_ms="1",
        session_timeout_ms="2",
        max_in_flight_requests="3",
    )
    assert zookeeper_settings(config) == ZooKeeperSettings(
        hosts="a:1,b:2", chroot="/kafka", connection_timeout_ms=1, session_timeout_ms=2, max_in_flight_requests=3
    )


def test_a_malformed_connection_string_is_refused_by_name() -> None:
    with pytest.raises(StartupError, match=r"zookeeper\.connect=a:1,,b:2: expected host:port"):
        zookeeper_settings(zookeeper_config(connect="a:1,,b:2"))


@async_test
async def test_zookeeper_is_opened_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(settings: ZooKeeperSettings) -> ZooKeeperSettings:
        return settings

    monkeypatch.setattr(ZooKeeperTree, "open", opened)
    config = zookeeper_config()
    assert await open_metadata_tree(config, ManualClock(), no_failure) == zookeeper_settings(config)  # type: ignore[comparison-overlap]
