from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from odradek.controller.tree.metadata_tree import (
    Create,
    CreateMode,
    GetChildren,
    Multi,
    MultiFailed,
    NodeExists,
    SetData,
    WatchEvent,
    WatchEventType,
)
from odradek.controller.tree.tree_store import TreeStore
from odradek.timer.clock import ManualClock

CREATED, DELETED, CHANGED, CHILDREN = (
    WatchEventType.CREATED,
    WatchEventType.DELETED,
    WatchEventType.CHANGED,
    WatchEventType.CHILDREN,
)


@pytest.fixture
def store() -> Iterator[TreeStore]:
    with closing(TreeStore(":memory:", ManualClock(7))) as opened:
        opened.begin()
        yield opened


def test_changes_are_what_watches_wait_for(store: TreeStore) -> None:
    session = store.start_session()
    store.apply(Create("/a", b"", CreateMode.EPHEMERAL), session)
    store.apply(SetData("/a", b"x"), session)
    store.end_session(session)
    assert store.take_changes() == [
        WatchEvent(CREATED, "/a"),
        WatchEvent(CHILDREN, "/"),
        WatchEvent(CHANGED, "/a"),
        WatchEvent(DELETED, "/a"),
        WatchEvent(CHILDREN, "/"),
    ]
    assert store.take_changes() == []


def test_a_refused_operation_changes_nothing(store: TreeStore) -> None:
    session = store.start_session()
    store.apply(Create("/a"), session)
    store.take_changes()
    with pytest.raises(NodeExists):
        store.apply(Create("/a"), session)
    with pytest.raises(MultiFailed):
        store.apply(Multi((Create("/b"), Create("/a"))), session)
    assert store.take_changes() == []
    children = store.apply(GetChildren("/"), session)
    assert children.names == ("a",)


def test_the_nodes_of_a_session_go_under_one_zxid(store: TreeStore) -> None:
    session, other = store.start_session(), store.start_session()
    for name in "ab":
        store.apply(Create(f"/{name}", b"", CreateMode.EPHEMERAL), session)
    before = store.apply(Create("/c"), other).stat.czxid
    store.end_session(session)
    assert store.apply(Create("/d"), other).stat.czxid == before + 2


def test_what_is_no_operation_is_a_bug(store: TreeStore) -> None:
    with pytest.raises(TypeError):
        store.apply(object(), 1)


def test_rollback_undoes_everything(store: TreeStore) -> None:
    session = store.start_session()
    store.apply(Create("/kept"), session)
    store.commit()
    store.take_changes()
    store.begin()
    refused = store.apply(Create("/gone"), session)
    assert store.start_session() == session + 1
    store.rollback()
    assert store.take_changes() == []
    store.begin()
    assert store.apply(GetChildren("/"), session).names == ("kept",)  # type: ignore[union-attr]
    again = store.apply(Create("/gone"), session)
    assert again == refused, "not even a zxid was used up"
    assert store.start_session() == session + 1
    store.commit()
