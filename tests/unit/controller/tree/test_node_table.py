from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odradek.controller.tree.metadata_tree import WatchEvent, WatchEventType
from odradek.controller.tree.node_table import NAMES_KEPT_FROM, NodeTable, key_of
from odradek.timer.clock import ManualClock
from tests.support.disks.open_descriptors import open_below


@pytest.fixture
def table() -> Iterator[NodeTable]:
    with closing(NodeTable(":memory:", ManualClock(7))) as opened:
        yield opened


def test_a_database_that_is_refused_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "later.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(sqlite3.DatabaseError, match="version 99") as refused:
        NodeTable(str(path), ManualClock(7))
    assert refused.value is not None  # which holds the frames, and so what they had opened
    assert not open_below(tmp_path)


def test_keys() -> None:
    assert key_of("/") == ("", "")
    assert key_of("/a") == ("/", "a")
    assert key_of("/a/b") == ("/a", "b")


def test_rows_count_their_children(table: NodeTable) -> None:
    table.insert("/a", b"x", 0)
    table.insert("/a/b", None, 9)
    table.remove("/a/b")
    table.insert("/a/c", None, 9)
    found = table.find("/a")
    assert found is not None
    assert (found.children_created, found.num_children, found.stat().cversion) == (2, 1, 3)
    assert table.names_of_children("/a") == ("c",)
    assert table.owned_by(9) == ["/a/c"]
    assert table.find("/none") is None


def test_a_savepoint_takes_back_rows_and_changes(table: NodeTable) -> None:
    table.insert("/a", None, 0)
    changes = table.savepoint()
    table.insert("/b", None, 0)
    table.undo(changes)
    assert table.find("/b") is None
    assert table.take_changes() == [WatchEvent(WatchEventType.CREATED, "/a"), WatchEvent(WatchEventType.CHILDREN, "/")]
    table.savepoint()
    table.insert("/b", None, 0)
    table.release()
    assert table.find("/b") is not None


def selects_of_names(table: NodeTable) -> list[str]:
    """The statements that read names of children from now on."""
    found: list[str] = []

    def trace(statement: str) -> None:
        if statement.startswith("SELECT name FROM node"):
            found.append(statement)

    table._connection.set_trace_callback(trace)
    return found


def test_the_names_of_many_children_are_read_once(table: NodeTable) -> None:
    table.insert("/many", None, 0)
    for number in range(NAMES_KEPT_FROM - 1):
        table.insert(f"/many/{number}", None, 0)
    selects = selects_of_names(table)
    for _ in range(2):
        assert len(table.names_of_children("/many")) == NAMES_KEPT_FROM - 1
    assert len(selects) == 2
    table.insert("/many/x", None, 0)
    for _ in range(3):
        assert table.names_of_children("/many")[-1] == "x"
    assert len(selects) == 3


@pytest.mark.parametrize("end", ["release", "undo", "rollback"])
def test_names_of_a_removed_node_are_not_kept(table: NodeTable, end: str) -> None:
    names = tuple(f"{number:03}" for number in range(NAMES_KEPT_FROM))
    table.insert("/many", None, 0)
    for name in names:
        table.insert(f"/many/{name}", None, 0)
    table.commit()
    table.begin()
    assert table.names_of_children("/many") == names
    changes = table.savepoint()
    for name in names:
        table.remove(f"/many/{name}")
    table.remove("/many")
    assert not table._names
    if end == "release":
        table.release()
        table.insert("/many", None, 0)
        assert table.names_of_children("/many") == ()
    elif end == "undo":
        table.undo(changes)
        assert table.names_of_children("/many") == names
    else:
        table.rollback()
        assert table.names_of_children("/many") == names


@pytest.mark.parametrize("end", ["release", "undo", "rollback"])
def test_kept_names_are_those_of_the_table(table: NodeTable, end: str) -> None:
    rng = random.Random(3)
    table.insert("/many", None, 0)
    names = [f"{chr(rng.choice((65, 233, 0xFFEE, 0x1F600)))}{number}" for number in range(2 * NAMES_KEPT_FROM)]
    for name in names[:NAMES_KEPT_FROM]:
        table.insert(f"/many/{name}", None, 0)
    table.commit()
    table.begin()
    assert len(table.names_of_children("/many")) == NAMES_KEPT_FROM
    changes = table.savepoint()
    for name in names[NAMES_KEPT_FROM:]:
        table.insert(f"/many/{name}", None, 0)
    for name in rng.sample(names, 100):
        table.remove(f"/many/{name}")
    if end == "release":
        table.release()
    elif end == "undo":
        table.undo(changes)
    else:
        table.rollback()
    kept = table.names_of_children("/many")
    table._names.clear()
    assert kept == table.names_of_children("/many")
    assert len(kept) == (2 * NAMES_KEPT_FROM - 100 if end == "release" else NAMES_KEPT_FROM)
