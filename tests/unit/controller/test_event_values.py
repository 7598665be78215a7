"""Which events, and which requests to the metadata tree, are equal."""

from __future__ import annotations

from odradek.controller.events import BrokerModifications, DeleteController, PartitionModifications, Startup
from odradek.controller.tree.metadata_tree import Check, Create, Delete, Exists, GetData, Multi


def test_events_are_equal_within_their_class() -> None:
    assert BrokerModifications(1) == BrokerModifications(1)
    assert hash(PartitionModifications("t")) == hash(PartitionModifications("t"))
    assert BrokerModifications(1) != BrokerModifications(2)
    assert BrokerModifications(1) != DeleteController(1)
    assert Startup() != BrokerModifications(1)
    assert repr(BrokerModifications(1)) == "BrokerModifications(broker_id=1)"


def test_requests_are_equal_within_their_class() -> None:
    assert len({GetData("/a"), GetData("/a", None), Exists("/a"), GetData("/b")}) == 3
    assert Delete("/a", 1) != Check("/a", 1)
    assert Multi((Create("/a", b"x"), Delete("/b"))) == Multi((Create("/a", b"x"), Delete("/b", -1)))
    assert repr(Delete("/a", 1)) == "Delete(path='/a', version=1)"
