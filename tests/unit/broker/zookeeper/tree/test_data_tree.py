from __future__ import annotations

from odradek.broker.zookeeper.codes import OpCode
from odradek.broker.zookeeper.jute import Acl, Identity
from odradek.broker.zookeeper.tree.acl_check import OPEN
from tests.support.wire.zookeeper_script import auth, create, path_and_version, path_and_watch, set_data
from tests.unit.broker.zookeeper.conftest import Service, TestedClient


def test_the_deletion_of_a_node_is_one_event_for_a_client_that_watches_it_twice(
    service: Service, client: TestedClient
) -> None:
    client.ask(OpCode.CREATE, create("/a"))
    client.ask(OpCode.GET_DATA, path_and_watch("/a", True))
    client.ask(OpCode.GET_CHILDREN, path_and_watch("/a", True))
    client.ask(OpCode.GET_CHILDREN, path_and_watch("/", True))
    client.ask(OpCode.DELETE, path_and_version("/a"))
    assert client.events() == [(2, "/a"), (4, "/")]
    assert service.processor.tree.number_of_watches() == 0


def test_an_event_is_for_clients_that_may_read_the_node(service: Service, client: TestedClient) -> None:
    other = service.client()
    client.ask(OpCode.AUTH, auth("digest", b"alice:secret"), -4)
    for each in (client, other):
        each.ask(OpCode.EXISTS, path_and_watch("/a", True))
    client.ask(OpCode.CREATE, create("/a", acl=[(31, "auth", "")]))
    assert client.events() == [(1, "/a")]
    assert other.events() == []
    assert other.ask(OpCode.GET_DATA, path_and_watch("/a", True))[0] != 0
    client.ask(OpCode.SET_DATA, set_data("/a", b"x"))
    assert other.events() == []


def test_the_root_has_two_names_and_other_text_none(service: Service) -> None:
    tree = service.processor.tree
    assert tree.find("") == tree.find("/")
    assert tree.find("a") is None
    assert tree.acls("") == OPEN
    assert tree.acls("/zookeeper/config") == (Acl(1, Identity("world", "anyone")),)
    assert tree.acl_version("/zookeeper/config") == -1
