"""Who may read the database of the metadata."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.metadata_tree_setup import open_metadata_tree
from odradek.controller.tree.embedded_tree import METADATA_FILE, EmbeddedTree
from odradek.controller.tree.metadata_tree import Create
from odradek.controller.tree.private_file import IN_MEMORY, make_private
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


def test_a_database_in_memory_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_private(IN_MEMORY)
    assert modes(tmp_path) == {}


@async_test
async def test_a_new_database_and_its_log_are_the_owners_alone(tmp_path: Path) -> None:
    tree = await EmbeddedTree.open(str(tmp_path / METADATA_FILE), ManualClock(), lambda error: None)
    await tree.run(Create("/a", b"secret"))
    assert modes(tmp_path) == {METADATA_FILE: 0o600, f"{METADATA_FILE}-wal": 0o600}
    await tree.close()


@async_test
async def test_an_open_database_is_closed_to_others_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / METADATA_FILE
    tree = await EmbeddedTree.open(str(path), ManualClock(), lambda error: None)
    await tree.close()
    path.chmod(0o664)
    caplog.clear()
    tree = await EmbeddedTree.open(str(path), ManualClock(), lambda error: None)
    await tree.run(Create("/a", b"secret"))
    assert set(modes(tmp_path).values()) == {0o600}
    assert f"{path}, which holds secrets: its mode 664 is now 600" in caplog.text
    await tree.close()


def test_what_sqlite_left_is_closed_too(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal", "-other"):
        (tmp_path / f"x.db{suffix}").touch(0o644)
    make_private(str(tmp_path / "x.db"))
    assert modes(tmp_path) == {"x.db": 0o600, **dict.fromkeys(("x.db-wal", "x.db-shm", "x.db-journal"), 0o600)} | {
        "x.db-other": 0o644
    }


def test_the_file_of_another_user_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    path.touch(0o644)

    def refuse(path: str, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    make_private(str(path))
    assert f"Others may read or write {path}, which holds secrets, and its mode 644 stays" in caplog.text


@async_test
async def test_a_directory_for_metadata_alone_is_private_and_a_log_directory_is_as_in_kafka(tmp_path: Path) -> None:
    for settings in ({"log.dirs": "logs"}, {"log.dirs": "logs", "metadata.dir": "metadata"}):
        config = BrokerConfig({name: str(tmp_path / directory) for name, directory in settings.items()})
        await (await open_metadata_tree(config, ManualClock(), lambda error: None)).close()
    assert modes(tmp_path) == {"logs": 0o777, "metadata": 0o700}
