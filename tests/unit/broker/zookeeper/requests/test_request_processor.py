from __future__ import annotations

import struct

from odradek.broker.zookeeper.client import IDENTITIES_MAX, Client
from odradek.broker.zookeeper.codes import Code, OpCode
from odradek.controller.tree.service_store import StoredSession
from tests.support.wire.zookeeper_script import auth, create, path_and_version, path_and_watch, set_data, text
from tests.unit.broker.zookeeper.conftest import RecordedConnection, Service, TestedClient


def test_each_write_takes_a_zxid_also_when_it_is_refused(service: Service, client: TestedClient) -> None:
    before = service.processor.zxid
    assert client.ask(OpCode.CREATE, create("/a"))[0] == Code.OK
    assert client.ask(OpCode.CREATE, create("/a"))[0] == Code.NODE_EXISTS
    assert client.ask(OpCode.CREATE, b"junk")[0] == Code.MARSHALLING_ERROR
    assert client.ask(OpCode.EXISTS, path_and_watch("/a"))[0] == Code.OK
    assert service.processor.zxid == before + 3


def test_an_event_comes_before_the_answer_to_the_change(client: TestedClient) -> None:
    client.ask(OpCode.EXISTS, path_and_watch("/a", True))
    client.ask(OpCode.CREATE, create("/a"))
    xids = [struct.unpack_from(">i", frame, 4)[0] for frame in client.connection.frames]
    assert xids == [1, -1, 1]
    assert client.events() == [(1, "/a")]


def test_ping_and_unknown_requests(client: TestedClient) -> None:
    assert client.ask(OpCode.PING, xid=-2) == (Code.OK, b"")
    assert client.ask(77)[0] == Code.UNIMPLEMENTED
    assert client.connection.is_closed


def test_a_header_that_is_too_short_closes_the_connection(service: Service, client: TestedClient) -> None:
    service.processor.request(client.client, b"\0\0\0")
    service.settle()
    assert client.connection.is_closed
    assert client.connection.frames == []


def test_what_comes_after_the_end_of_a_connection_is_not_handled(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CLOSE_SESSION)
    service.processor.request(client.client, struct.pack(">ii", 5, OpCode.CREATE) + create("/late"))
    service.settle()
    assert service.store.find("/late") is None


def test_the_end_of_a_session_takes_its_nodes_and_is_answered_first(service: Service, client: TestedClient) -> None:
    other = service.client()
    client.ask(OpCode.CREATE, create("/e", flags=1))
    other.ask(OpCode.EXISTS, path_and_watch("/e", True))
    assert client.ask(OpCode.CLOSE_SESSION)[0] == Code.OK
    assert other.events() == [(2, "/e")]
    assert service.ended == [client.client.session_id]
    assert [session.session_id for session in service.store.sessions()] == [other.client.session_id]


def test_an_expired_session(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/e", flags=1))
    service.processor.end_session(client.client.session_id)
    service.processor.end_session(client.client.session_id)
    service.settle()
    assert service.ended == [client.client.session_id]
    assert service.store.find("/e") is None
    assert client.ask(OpCode.GET_DATA, path_and_watch("/"))[0] == Code.SESSION_EXPIRED


def test_a_client_comes_back_to_its_session(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/e", flags=1))
    stored = client.connection.session
    assert stored is not None
    service.processor.connection_lost(client.client)
    again, connection = Client("10.0.0.1"), RecordedConnection()
    service.processor.resume_session(again, connection, stored)
    service.settle()
    assert connection.session == stored
    assert service.store.find("/e") is not None
    late = RecordedConnection()
    service.processor.end_session(stored.session_id)
    service.processor.resume_session(Client("10.0.0.1"), late, stored)
    service.settle()
    assert late.is_refused


def test_watches_go_with_the_connection(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.EXISTS, path_and_watch("/a", True))
    service.processor.connection_lost(client.client)
    assert service.processor.tree.number_of_watches() == 0
    service.client().ask(OpCode.CREATE, create("/a"))
    assert client.events() == []


def test_authentication(client: TestedClient) -> None:
    assert client.ask(OpCode.AUTH, auth("digest", b"alice:secret"), -4) == (Code.OK, b"")
    assert client.ask(OpCode.SASL, b"") == (Code.OK, b"\xff\xff\xff\xff")
    assert client.ask(OpCode.AUTH, auth("sasl", b""), -4)[0] == Code.AUTH_FAILED
    assert client.connection.is_closed


def test_the_identities_of_a_client_are_bounded(client: TestedClient) -> None:
    for number in range(IDENTITIES_MAX - 1):
        assert client.ask(OpCode.AUTH, auth("digest", b"u%d:p" % number), -4)[0] == Code.OK
    assert client.ask(OpCode.AUTH, auth("digest", b"u0:p"), -4)[0] == Code.OK
    assert client.ask(OpCode.AUTH, auth("digest", b"one:more"), -4)[0] == Code.AUTH_FAILED


def test_containers_without_children_are_removed(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CREATE_CONTAINER, create("/never-used", flags=4))
    client.ask(OpCode.CREATE_CONTAINER, create("/used", flags=4))
    client.ask(OpCode.CREATE_CONTAINER, create("/in-use", flags=4))
    client.ask(OpCode.CREATE, create("/used/child"))
    client.ask(OpCode.CREATE, create("/in-use/child"))
    client.ask(OpCode.DELETE, path_and_version("/used/child"))
    service.processor.remove_unused_containers()
    found = [path for path in ("/never-used", "/used", "/in-use") if service.store.find(path)]
    assert found == ["/never-used", "/in-use"]


def test_requests_of_ensembles_and_servers_are_refused(client: TestedClient) -> None:
    assert client.ask(OpCode.RECONFIG)[0] == Code.RECONFIG_DISABLED
    assert client.ask(OpCode.DELETE_CONTAINER, text("/a"))[0] == Code.BAD_ARGUMENTS
    assert client.ask(OpCode.SET_DATA, set_data("/none", b""))[0] == Code.NO_NODE


def test_a_session_that_is_stored_is_known_after_a_restart(service: Service, client: TestedClient) -> None:
    from odradek.broker.zookeeper.requests.request_processor import RequestProcessor

    again = RequestProcessor(service.store, service.ended.append)
    connection = RecordedConnection()
    assert client.connection.session is not None
    again.resume_session(Client("10.0.0.1"), connection, client.connection.session)
    again.output[0]()
    assert isinstance(connection.session, StoredSession)
