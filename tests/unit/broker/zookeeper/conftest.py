"""A request processor over a tree in memory, with connections that record what they are given."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing

import pytest

from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
from odradek.broker.zookeeper.tree.data_tree import CONFIG_ACL
from odradek.controller.tree.service_store import ServiceStore, StoredSession
from odradek.timer.clock import ManualClock

TIMEOUT_MS = 4000


class RecordedConnection:
    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.session: StoredSession | None = None
        self.is_refused = False
        self.is_closed = False

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self) -> None:
        self.is_closed = True

    def session_started(self, session: StoredSession) -> None:
        self.session = session

    def session_refused(self) -> None:
        self.is_refused = True


class Service:
    """A processor without its thread: work is applied at once."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.store = ServiceStore(":memory:", self.clock, CONFIG_ACL)
        self.ended: list[int] = []
        self.processor = RequestProcessor(self.store, self.ended.append)

    def close(self) -> None:
        self.store.close()

    def settle(self) -> None:
        self.store.begin()
        self.store.commit()
        for call in self.processor.take_output():
            call()

    def client(self, address: str = "10.0.0.1") -> TestedClient:
        return TestedClient(self, address)


class TestedClient:
    __test__ = False

    def __init__(self, service: Service, address: str) -> None:
        self.service = service
        self.client = Client(address)
        self.connection = RecordedConnection()
        service.processor.start_session(self.client, self.connection, TIMEOUT_MS)
        service.settle()

    def ask(self, kind: int, body: bytes = b"", xid: int = 1) -> tuple[int, bytes]:
        """The error and the body of the answer."""
        before = len(self.connection.frames)
        self.service.processor.request(self.client, struct.pack(">ii", xid, kind) + body)
        self.service.settle()
        answers = [frame for frame in self.connection.frames[before:] if struct.unpack_from(">i", frame, 4)[0] == xid]
        (answer,) = answers
        return struct.unpack_from(">i", answer, 16)[0], answer[20:]

    def events(self) -> list[tuple[int, str]]:
        """The events so far: type and path."""
        bodies = [frame[20:] for frame in self.connection.frames if struct.unpack_from(">i", frame, 4)[0] == -1]
        return [(struct.unpack_from(">i", body)[0], body[12:].decode()) for body in bodies]


@pytest.fixture
def service() -> Iterator[Service]:
    with closing(Service()) as made:
        yield made


@pytest.fixture
def client(service: Service) -> TestedClient:
    return service.client()
