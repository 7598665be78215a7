from __future__ import annotations

from odradek.broker.zookeeper.codes import EventType
from odradek.broker.zookeeper.watch_manager import WatcherMode, WatchManager

CHANGED, CHILDREN, CREATED = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED, EventType.CREATED


def test_a_standard_watch_fires_once() -> None:
    watches: WatchManager[str] = WatchManager()
    watches.add("/a", "one")
    watches.add("/a", "two")
    watches.add("/a", "one")
    assert watches.trigger("/a", CHANGED) == ["one", "two"]
    assert watches.trigger("/a", CHANGED) == []
    assert watches.by_path() == {}
    assert watches.by_watcher() == {}


def test_a_persistent_watch_stays_and_sees_its_path_only() -> None:
    watches: WatchManager[str] = WatchManager()
    watches.add("/a", "one", WatcherMode.PERSISTENT)
    assert watches.trigger("/a", CHANGED) == ["one"]
    assert watches.trigger("/a", CHILDREN) == ["one"]
    assert watches.trigger("/a/b", CREATED) == []


def test_a_recursive_watch_sees_what_is_below_and_no_lists_of_children() -> None:
    watches: WatchManager[str] = WatchManager()
    watches.add("/", "one", WatcherMode.PERSISTENT_RECURSIVE)
    assert watches.trigger("/a/b", CREATED) == ["one"]
    assert watches.trigger("/a", CHILDREN) == []
    assert watches.remove("/", "one")
    assert not watches.remove("/", "one")
    assert watches.trigger("/a/b", CREATED) == []


def test_a_standard_watch_takes_the_place_of_a_persistent_one() -> None:
    watches: WatchManager[str] = WatchManager()
    watches.add("/a", "one", WatcherMode.PERSISTENT_RECURSIVE)
    watches.add("/a", "one")
    assert watches.trigger("/a/b", CREATED) == []
    assert watches.trigger("/a", CHANGED) == ["one"]
    assert watches.trigger("/a", CHANGED) == []


def test_the_watches_of_a_connection_go_with_it() -> None:
    watches: WatchManager[str] = WatchManager()
    watches.add("/a", "one", WatcherMode.PERSISTENT_RECURSIVE)
    watches.add("/b", "one")
    watches.add("/b", "two")
    assert watches.by_watcher() == {"one": ["/a", "/b"], "two": ["/b"]}
    watches.remove_watcher("one")
    assert watches.by_path() == {"/b": ["two"]}
    assert not watches.contains("/a", "one")
    assert watches.contains("/b", "two")
