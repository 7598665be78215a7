from __future__ import annotations

import pytest

from odradek.controller.tree.metadata_tree import (
    Children,
    DataAndStat,
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    SetData,
    Stat,
    WatchEvent,
    WatchEventType,
)
from odradek.controller.tree.zookeeper_watches import Watches

CREATED, DELETED = WatchEventType.CREATED, WatchEventType.DELETED
CHANGED, CHILDREN = WatchEventType.CHANGED, WatchEventType.CHILDREN


def stat(mzxid: int = 1, pzxid: int = 1) -> Stat:
    return Stat(1, mzxid, pzxid, 0, 0, 0, 0, 0, 0, 0)


def nobody(event: WatchEvent) -> None:
    raise AssertionError


def test_what_was_read_is_watched_and_what_is_not_there_only_by_exists() -> None:
    watches = Watches()
    for operation, result in (
        (GetData("/data", nobody), DataAndStat(b"", stat())),
        (GetData("/none", nobody), NoNode("/none")),
        (GetData("/unwatched"), DataAndStat(b"", stat())),
        (Exists("/absent", nobody), None),
        (GetChildren("/children", nobody), Children((), stat())),
        (GetChildren("/childless", nobody), NoNode("/childless")),
        (SetData("/data", b""), stat(9)),
    ):
        watches.note(operation, result)
    assert watches.rereads(nobody) == [
        Exists("/data", nobody),
        Exists("/absent", nobody),
        GetChildren("/children", nobody),
    ]
    watches.clear()
    assert watches.rereads(nobody) == []


def test_events_take_the_watchers_they_are_for_once() -> None:
    watches = Watches()
    first: list[WatchEvent] = []
    on_data, on_children = first.append, first.clear
    watches.note(GetData("/a", on_data), DataAndStat(b"", stat()))
    watches.note(Exists("/a", on_data), stat())
    watches.note(GetChildren("/a", on_children), Children((), stat()))
    assert watches.fire(WatchEvent(CHILDREN, "/a")) == [on_children]
    assert watches.fire(WatchEvent(CHANGED, "/b")) == []
    watches.note(GetChildren("/a", on_data), Children((), stat()))
    assert watches.fire(WatchEvent(DELETED, "/a")) == [on_data]
    assert watches.fire(WatchEvent(DELETED, "/a")) == []


@pytest.mark.parametrize(
    ("watched", "before", "reread", "now", "missed"),
    [
        (GetData("/a", nobody), DataAndStat(b"", stat(3)), Exists("/a", nobody), stat(3), None),
        (GetData("/a", nobody), DataAndStat(b"", stat(3)), Exists("/a", nobody), stat(4), CHANGED),
        (GetData("/a", nobody), DataAndStat(b"", stat(3)), Exists("/a", nobody), None, DELETED),
        (Exists("/a", nobody), stat(3), Exists("/a", nobody), stat(3, pzxid=9), None),
        (Exists("/a", nobody), None, Exists("/a", nobody), None, None),
        (Exists("/a", nobody), None, Exists("/a", nobody), stat(4), CREATED),
        (
            GetChildren("/a", nobody),
            Children((), stat(1, 3)),
            GetChildren("/a", nobody),
            Children((), stat(9, 3)),
            None,
        ),
        (
            GetChildren("/a", nobody),
            Children((), stat(1, 3)),
            GetChildren("/a", nobody),
            Children((), stat(1, 4)),
            CHILDREN,
        ),
        (GetChildren("/a", nobody), Children((), stat(1, 3)), GetChildren("/a", nobody), NoNode("/a"), DELETED),
    ],
)
def test_a_reread_tells_what_happened_unseen(
    watched: Operation[object], before: object, reread: Operation[object], now: object, missed: WatchEventType | None
) -> None:
    watches = Watches()
    watches.note(watched, before)
    assert watches.missed(reread, now) == (None if missed is None else WatchEvent(missed, "/a"))


def test_what_has_fired_in_between_is_not_missed() -> None:
    watches = Watches()
    watches.note(GetData("/a", nobody), DataAndStat(b"", stat(3)))
    watches.note(GetChildren("/a", nobody), Children((), stat()))
    watches.fire(WatchEvent(DELETED, "/a"))
    assert watches.missed(Exists("/a", nobody), None) is None
    assert watches.missed(GetChildren("/a", nobody), NoNode("/a")) is None
