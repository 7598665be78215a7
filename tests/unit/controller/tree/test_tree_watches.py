from __future__ import annotations

from odradek.controller.tree.metadata_tree import Exists, GetChildren, GetData, NoNode, WatchEvent, WatchEventType
from odradek.controller.tree.tree_watches import TreeWatches


def ignore(event: WatchEvent) -> None: ...


def changed(path: str) -> WatchEvent:
    return WatchEvent(WatchEventType.CHANGED, path)


def test_a_change_takes_the_watches_it_sets_off() -> None:
    watches: TreeWatches[str] = TreeWatches()
    watches.watch("one", GetData("/a", ignore), None)
    watches.watch("other", GetData("/a", ignore), None)
    assert watches.fire(changed("/b")) == []
    assert watches.fire(changed("/a")) == [("one", ignore, changed("/a")), ("other", ignore, changed("/a"))]
    assert watches.fire(changed("/a")) == []


def test_only_exists_watches_a_node_that_is_not_there() -> None:
    watches: TreeWatches[str] = TreeWatches()
    for operation in (GetData("/a", ignore), GetChildren("/a", ignore)):
        watches.watch("one", operation, NoNode("/a"))
    created = WatchEvent(WatchEventType.CREATED, "/a")
    assert watches.fire(created) == []
    watches.watch("one", Exists("/a", ignore), None)
    assert watches.fire(created) == [("one", ignore, created)]


def test_a_deletion_tells_a_watcher_of_data_and_children_once() -> None:
    watches: TreeWatches[str] = TreeWatches()
    watches.watch("one", GetData("/a", ignore), None)
    watches.watch("one", GetChildren("/a", ignore), None)
    deleted = WatchEvent(WatchEventType.DELETED, "/a")
    assert watches.fire(deleted) == [("one", ignore, deleted)]


def test_a_rollback_sets_watches_again_and_a_commit_does_not() -> None:
    watches: TreeWatches[str] = TreeWatches()
    watches.watch("one", GetData("/a", ignore), None)
    watches.fire(changed("/a"))
    watches.rollback()
    assert watches.fire(changed("/a"))
    watches.commit()
    watches.rollback()
    assert watches.fire(changed("/a")) == []


def test_a_client_that_is_forgotten_hears_nothing() -> None:
    watches: TreeWatches[str] = TreeWatches()
    watches.watch("one", GetData("/a", ignore), None)
    watches.watch("other", GetData("/a", ignore), None)
    watches.watch("one", GetChildren("/a", ignore), None)
    watches.forget("one")
    assert watches.fire(changed("/a")) == [("other", ignore, changed("/a"))]
    assert watches.fire(WatchEvent(WatchEventType.CHILDREN, "/a")) == []
