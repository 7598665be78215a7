from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.network.sockets.host_addresses import HostAddresses
from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from tests.support.disks.logs import DeferredIoPool
from tests.support.in_process.in_process_broker import in_process_broker
from tests.support.wire.requests import build


def test_hosts_of_many_requests_take_one_thread_of_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else clients that name hosts of a slow name server keep the threads from flushes."""

    def getaddrinfo(host: str, port: None, **_: object) -> list[tuple[object, ...]]:
        raise OSError(-2, "Name or service not known")

    pool = DeferredIoPool()
    with in_process_broker(tmp_path) as broker:
        monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
        broker.services.io_pool, broker.services.host_addresses = pool, HostAddresses(pool)
        ops = [{"key": "connection_creation_rate", "value": 5.0, "remove": False}]
        asked = []
        for number in range(3):
            entity = [{"entity_type": "ip", "entity_name": f"{number}.example"}]
            request = build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[{"entity": entity, "ops": ops}], validate_only=True)
            asked.append(broker.send(request, 1))
        for number, waiting in enumerate(asked, 1):
            assert broker.settle(lambda: bool(pool.pending))
            assert len(pool.pending) == 1
            pool.run_one()
            assert broker.settle(lambda: sum(each.is_over for each in asked) == number)  # noqa: B023 - used at once
            assert isinstance(waiting.answer, AlterClientQuotasResponse)
            assert [entry.error_code for entry in waiting.answer.entries] == [ErrorCode.INVALID_REQUEST]


def test_the_log_line_of_an_entity_of_many_types_is_short(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A request of 1 MB names 100,000 types: a line of that length holds the event loop for 50 ms."""
    caplog.set_level("INFO")
    entity = [{"entity_type": f"type-{number}", "entity_name": "x"} for number in range(2000)]
    with in_process_broker(tmp_path) as broker:
        request = build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[{"entity": entity, "ops": []}], validate_only=True)
        waiting = broker.send(request, 1)
        assert broker.settle(lambda: waiting.is_over)
    assert isinstance(waiting.answer, AlterClientQuotasResponse)
    assert len(waiting.answer.entries[0].entity) == 2000
    (line,) = [each.getMessage() for each in caplog.records if "client quotas of" in each.getMessage()]
    assert "'type-2'" in line
    assert len(line) < 300


def test_an_entity_whose_node_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    """The node of the user is read when the last quota of the user with a client id is removed."""
    unreadable = znodes.entity_config_path("users/u")
    below = znodes.entity_config_path("users/u/clients/c")
    op = {"key": "producer_byte_rate", "value": 5.0, "remove": True}
    kinds = [{"user": "u", "client-id": "c"}, {"user": "u"}, {"client-id": "c"}]
    entries = [
        {"entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()], "ops": [op]}
        for entity in kinds
    ]
    with in_process_broker(tmp_path) as broker:
        client = broker.services.controller.client
        broker.run(client.create_recursive(unreadable, b'{"version":1,"config":{"producer_byte_rate":5}}'))
        broker.run(client.create_recursive(below, znodes.encode_entity_config({"producer_byte_rate": "5"})))
        answer = broker.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=entries, validate_only=False), 1)
    assert isinstance(answer, AlterClientQuotasResponse)
    unexpected = ErrorCode.UNKNOWN_SERVER_ERROR
    assert [entry.error_code for entry in answer.entries] == [unexpected, unexpected, ErrorCode.NONE]
