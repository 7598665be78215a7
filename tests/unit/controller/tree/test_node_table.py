from __future__ import annotations

import pytest

from odradek.controller.tree.metadata_tree import WatchEvent, WatchEventType
from odradek.controller.tree.node_table import NodeTable, key_of
from odradek.timer.clock import ManualClock


@pytest.fixture
def table() -> NodeTable:
    return NodeTable(":memory:", ManualClock(7))


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
