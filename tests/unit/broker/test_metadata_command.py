from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.metadata_command import zookeeper_settings
from odradek.controller.tree import node_table
from odradek.controller.tree.embedded_tree import METADATA_FILE, EmbeddedTree, TreeDatabase
from odradek.controller.tree.metadata_tree import Create, GetData
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes.metadata_copy import CopyRefused
from odradek.timer.clock import ManualClock


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[EmbeddedTree]:
    database = await TreeDatabase.open(str(path), ManualClock(1000))
    yield await database.connect()
    await database.close()


async def fill(path: Path) -> None:
    async with opened(path) as tree:
        await tree.submit([Create("/cluster"), Create("/cluster/id", b'{"version":"1","id":"abc"}')])


async def cluster_node(path: Path) -> bytes | None:
    async with opened(path) as tree:
        return (await tree.run(GetData("/cluster/id"))).data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with metadata, and an empty one beside it."""
    for name in ("data", "copy"):
        (tmp_path / name).mkdir()
    asyncio.run(fill(tmp_path / "data" / METADATA_FILE))
    return tmp_path / "data"


def copy(source: Path | str, target: Path | str, *options: str) -> int:
    return cli.main(["metadata", "copy", "--from", str(source), "--to", str(target), *options])


@pytest.mark.parametrize(("source", "target"), [("data", "copy"), (f"data/{METADATA_FILE}", "copy/other.db")])
def test_directories_and_files(data: Path, source: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy(data.parent / source, data.parent / target) == 0
    assert "holds the metadata of the cluster abc: 2 nodes, 2 writes" in capsys.readouterr().out
    assert copy(data.parent / source, data.parent / target, "--json") == 0
    facts = {"target": str(data.parent / target), "cluster_id": "abc", "nodes": 2, "writes": 0}
    assert json.loads(capsys.readouterr().out) == facts
    (made,) = (data.parent / "copy").glob("*.db")
    assert asyncio.run(cluster_node(made)) == b'{"version":"1","id":"abc"}'


def test_zookeeper_is_connected_and_left(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []

    class Nodes:
        async def close(self) -> None:
            steps.append("close")

        async def submit(self, operations: list[object]) -> list[object]:
            raise CopyRefused("canary")

    async def opened(settings: ZooKeeperSettings, *, waits_for_server: bool, creates_chroot: bool) -> Nodes:
        assert not waits_for_server
        steps.append((settings.hosts, settings.chroot, creates_chroot, settings.tls is not None))
        return Nodes()

    monkeypatch.setattr(ZooKeeperTree, "open", opened)
    assert copy(data, "zookeeper://a:1,b:2/kafka") == 1
    assert steps == [("a:1,b:2", "/kafka", True, False), "close"]
    steps.clear()
    assert copy("zookeeper://a:1/", data) == 1
    assert steps == [("a:1", "", False, False), "close"]
    steps.clear()
    keys = data.parent / "zookeeper.properties"
    keys.write_text("zookeeper.ssl.client.enable=true\nbroker.id=1\n")
    assert copy("zookeeper://a:1/", data, "--zk-tls-config-file", str(keys)) == 1
    assert steps == [("a:1", "", False, True), "close"]


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("odradek: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_missing_location_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy(data.parent / "copy", data) == 1
    assert "copy/odradek-metadata.db: there is no metadata" in refusal(capsys)
    assert copy(data, data.parent / "nowhere" / "x.db") == 1
    assert "is neither a directory nor a .db file in one" in refusal(capsys)
    assert copy(data, data.parent / "nowhere") == 1
    assert "is neither a directory nor a .db file in one" in refusal(capsys)
    assert not list((data.parent / "copy").iterdir())


def test_what_is_wrong_with_the_file_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = data.parent / "zookeeper.properties"
    assert copy("zookeeper://a:1/", data, "--zk-tls-config-file", str(keys)) == 1
    assert str(keys) in refusal(capsys)
    keys.write_text("odradek.zookeeper.sasl.username=canary\n")
    assert copy("zookeeper://a:1/", data, "--zk-tls-config-file", str(keys)) == 1
    assert "odradek.zookeeper.sasl.password, or neither" in refusal(capsys)
    keys.write_text("zookeeper.ssl.client.enable=perhaps\n")
    assert copy("zookeeper://a:1/", data, "--zk-tls-config-file", str(keys)) == 1
    assert "Invalid value perhaps" in refusal(capsys)


def test_database_of_a_living_broker_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_table, "_LOCK_TIMEOUT_S", 0)
    asyncio.run(fill(data.parent / "copy" / METADATA_FILE))
    broker = sqlite3.connect(data.parent / "copy" / METADATA_FILE)
    broker.execute("PRAGMA locking_mode = EXCLUSIVE")
    broker.execute("BEGIN EXCLUSIVE")
    for source, target in ((data, data.parent / "copy"), (data.parent / "copy", data)):
        assert copy(source, target) == 1
        assert "it is in use by a running broker" in refusal(capsys)
    broker.close()


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("zookeeper://h:1", ("h:1", "")),
        ("zookeeper://h:1,g/", ("h:1,g", "")),
        ("zookeeper://[::1]:2181,,h/a/b", ("[::1]:2181,h", "/a/b")),
    ],
)
def test_locations(location: str, expected: tuple[str, str]) -> None:
    settings = zookeeper_settings(location, {})
    assert (settings.hosts, settings.chroot) == expected


@pytest.mark.parametrize("location", ["zookeeper://", "zookeeper:///kafka", "zookeeper://h:1/a/", "zookeeper://h//a"])
def test_locations_that_are_none(location: str) -> None:
    with pytest.raises(CopyRefused, match="expected zookeeper://"):
        zookeeper_settings(location, {})
