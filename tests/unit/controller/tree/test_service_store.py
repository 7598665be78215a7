from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odradek.controller.tree.service_store import CONTAINER, ServiceStore, StoreUnavailable, open_store
from odradek.timer.clock import ManualClock

ACL = b"read-only"


@pytest.fixture
def store() -> Iterator[ServiceStore]:
    with closing(ServiceStore(":memory:", ManualClock(1_000_000), ACL)) as opened:
        opened.begin()
        yield opened


def test_a_new_tree_is_that_of_a_new_zookeeper(store: ServiceStore) -> None:
    root, zookeeper = store.find("/"), store.find("/zookeeper")
    assert root is not None
    assert zookeeper is not None
    assert (root.data, root.stat().cversion, root.num_children) == (b"", -1, 1)
    assert (zookeeper.data, zookeeper.stat().cversion, zookeeper.czxid, zookeeper.ctime_ms) == (b"", -2, 0, 0)
    assert store.names_of_children("/zookeeper") == ("config", "quota")
    assert store.acl("/zookeeper/config") == (ACL, -1)
    assert store.acl("/zookeeper") == (None, 0)
    assert store.zxid == 0
    assert store.number_of_nodes() == 5
    assert store.number_below("/") == 3
    assert store.number_below("/zookeeper") == 2


def test_sessions_and_their_nodes_outlive_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "tree.db")
    clock = ManualClock(1_000_000)
    store = open_store(path, clock, ACL)
    store.begin()
    store.take_zxid()
    session = store.add_session(4000)
    other = store.add_session(5000)
    store.insert("/e", b"", session.session_id)
    store.write_acl("/e", b"mine", 0)
    store.remove_session(other.session_id)
    store.commit()
    store.close()
    store = open_store(path, clock, ACL)
    assert store.sessions() == [session]
    assert store.owned_by(session.session_id) == ["/e"]
    assert store.owners() == [session.session_id]
    assert store.acl("/e") == (b"mine", 0)
    assert store.zxid == 1
    assert len(session.password) == 16
    assert session.session_id >> 56 == 1
    store.begin()
    assert store.add_session(1).session_id > other.session_id, "ids never repeat, also if the clock stands still"
    store.rollback()
    store.close()


def test_an_acl_goes_with_its_node(store: ServiceStore) -> None:
    store.insert("/a", None, 0)
    store.write_acl("/a", b"mine", 3)
    store.remove("/a")
    store.insert("/a", None, 0)
    assert store.acl("/a") == (None, 0)


def test_containers_that_had_children(store: ServiceStore) -> None:
    for path in ("/never", "/once", "/now"):
        store.insert(path, None, CONTAINER)
    store.insert("/once/x", None, 0)
    store.insert("/now/x", None, 0)
    store.remove("/once/x")
    assert store.unused_containers() == ["/once"]
    assert store.owners() == []


def test_the_size_of_the_data(store: ServiceStore) -> None:
    before = store.data_size()
    store.insert("/abc", b"12345", 0)
    assert store.data_size() == before + len("/") + 1 + len("abc") + 5


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "tree.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StoreUnavailable, match="cannot open"):
        open_store(str(path), ManualClock(), ACL)
