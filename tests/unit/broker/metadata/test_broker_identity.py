from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoint import EndPoint
from odradek.broker.metadata import broker_identity
from odradek.broker.metadata.broker_identity import BrokerIdentity, establish_identity, registered_info
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import Exists
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.storage.disk.log_dir import LogDir, LogDirError
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.disks.logs import Disk

NEW_ID = bytes(range(16))
NEW_CLUSTER = uuid_to_text(NEW_ID)


def directories(path: Path, *stored: str | None) -> list[LogDir]:
    """Formatted with the given lines of meta.properties; None for a new directory."""
    made = []
    for number, lines in enumerate(stored):
        directory = path / str(number)
        directory.mkdir()
        if lines is not None:
            (directory / "meta.properties").write_text(lines)
        made.append(Disk(directory).log_dir)
    return made


async def identity(log_dirs: Sequence[LogDir], *, zookeeper: bool, **settings: str) -> BrokerIdentity:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    if zookeeper:
        keys |= {"zookeeper.connect": "zk:2181", "listeners": "PLAINTEXT://h:1"}
    database = await TreeDatabase.open(":memory:", ManualClock())
    client = MetadataClient(await database.connect())
    try:
        established = await establish_identity(BrokerConfig(keys), client, log_dirs, lambda: NEW_ID)
        assert await client.tree.run(Exists(znodes.BROKER_IDS)) is not None
    finally:
        await database.close()
    return established


@async_test
async def test_new_directories_get_a_new_identity(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, None, None)
    assert await identity(log_dirs, zookeeper=True, broker_id="7") == (NEW_CLUSTER, 7)
    for log_dir in log_dirs:
        assert log_dir.read_meta_properties() == {"version": "0", "broker.id": "7", "cluster.id": NEW_CLUSTER}


@async_test
async def test_without_an_id_one_above_the_reserved_ones_is_generated_and_kept(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, None, None)
    assert (await identity(log_dirs, zookeeper=True)).broker_id == 1001
    assert (await identity([*log_dirs], zookeeper=True, reserved_broker_max_id="50")).broker_id == 1001
    (tmp_path / "other").mkdir()
    fresh = directories(tmp_path / "other", None)
    assert (await identity(fresh, zookeeper=True, reserved_broker_max_id="50")).broker_id == 51


@async_test
async def test_a_new_directory_joins_the_others(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, None, f"broker.id=3\ncluster.id={NEW_CLUSTER}\ndirectory.id=x\n")
    assert (await identity(log_dirs, zookeeper=True)).broker_id == 3
    assert (log_dirs[0].read_meta_properties() or {})["broker.id"] == "3"
    assert (log_dirs[1].read_meta_properties() or {})["directory.id"] == "x"


@async_test
async def test_a_directory_without_readable_identity_fails_and_the_others_serve(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, "broker.id=\\u12\n", "broker.id=3\n")
    assert (await identity(log_dirs, zookeeper=True, broker_id="3")).broker_id == 3
    assert [log_dir.is_online for log_dir in log_dirs] == [False, True]


@pytest.mark.parametrize("broker_id", ["-1", "3"])
@async_test
async def test_directories_at_odds_are_refused(tmp_path: Path, broker_id: str) -> None:
    log_dirs = directories(tmp_path, "broker.id=3\n", "broker.id=4\n")
    with pytest.raises(LogDirError, match=r"broker\.id 3 doesn't match stored broker\.id 4"):
        await identity(log_dirs, zookeeper=True, broker_id=broker_id)


@async_test
async def test_a_directory_of_another_cluster_is_refused_and_left_alone(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, None, "broker.id=3\ncluster.id=other\n")
    with pytest.raises(LogDirError, match=f"{NEW_CLUSTER} doesn't match stored clusterId other"):
        await identity(log_dirs, zookeeper=True, broker_id="3")
    assert log_dirs[0].read_meta_properties() is None


@async_test
async def test_a_lone_broker_that_lost_its_metadata_keeps_its_cluster(tmp_path: Path) -> None:
    log_dirs = directories(tmp_path, None, "broker.id=0\ncluster.id=other\n")
    assert await identity(log_dirs, zookeeper=False) == ("other", 0)


@async_test
async def test_a_directory_that_cannot_be_read_or_written_fails_by_itself(tmp_path: Path) -> None:
    unreadable, unwritable, good = directories(tmp_path, None, None, None)
    os.mkdir(unreadable.file("meta.properties"))
    os.rmdir(unwritable.path)
    assert (await identity([unreadable, unwritable, good], zookeeper=True, broker_id="1")).broker_id == 1
    assert [log_dir.is_online for log_dir in (unreadable, unwritable, good)] == [False, False, True]


def info(monkeypatch: pytest.MonkeyPatch, **settings: str) -> list[tuple[str, int, str]]:
    monkeypatch.setattr(broker_identity.socket, "getfqdn", lambda: "machine.example")
    config = BrokerConfig({name.replace("_", "."): value for name, value in settings.items()})
    bound = [
        EndPoint("", 50000 + number, point.listener_name, point.security_protocol)
        for number, point in enumerate(config.listeners.bound)
    ]
    registered = registered_info(config, 7, bound).broker
    assert (registered.id, registered.rack) == (7, settings.get("broker_rack"))
    return [(point.host, point.port, point.listener_name) for point in registered.end_points]


def test_advertised_listeners_are_registered_with_bound_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    protocols = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    keys = {"listeners": "PLAINTEXT://:0,OTHER://h:9", "listener_security_protocol_map": protocols}
    assert info(monkeypatch, **keys) == [("localhost", 50000, "PLAINTEXT"), ("h", 9, "OTHER")]
    member = {**keys, "zookeeper_connect": "zk:1", "broker_rack": "r1"}
    assert info(monkeypatch, **member) == [("machine.example", 50000, "PLAINTEXT"), ("h", 9, "OTHER")]
    told = {**member, "advertised_listeners": "PLAINTEXT://public:1"}
    assert info(monkeypatch, **told) == [("public", 1, "PLAINTEXT")]
