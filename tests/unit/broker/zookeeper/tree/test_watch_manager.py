from __future__ import annotations

import pytest

from odradek.broker.zookeeper.codes import EventType, LimitExceeded
from odradek.broker.zookeeper.tree import watch_manager
from odradek.broker.zookeeper.tree.watch_manager import WATCH_BYTES, WatcherMode, WatchManager

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


def test_the_watches_of_a_connection_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    half, other_half = "/half", "/rest"
    monkeypatch.setattr(watch_manager, "WATCHES_BYTES_MAX", 2 * (WATCH_BYTES + len(half)))
    watches: WatchManager[str] = WatchManager()
    for mode in (WatcherMode.STANDARD, WatcherMode.PERSISTENT):  # the second takes the place of the first
        watches.add(half, "one", mode)
        watches.add(other_half, "one", mode)
    with pytest.raises(LimitExceeded):
        watches.add("/", "one")
    watches.add("/", "two")
    watches.remove(half, "one")
    watches.add("/", "one")
    watches.remove_watcher("one")
    watches.remove_watcher("two")
    assert not watches._bytes
    with pytest.raises(LimitExceeded):
        watches.add(half * WATCH_BYTES, "one")
    assert watches.by_watcher() == {}
