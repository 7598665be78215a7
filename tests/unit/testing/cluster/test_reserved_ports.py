from __future__ import annotations

import asyncio

import pytest

from odradek.broker.config.endpoint import EndPoint
from odradek.broker.network.sockets.listening_socket import bound_port, open_listening_socket
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.testing.cluster.reserved_ports import ReservedPorts
from tests.support.wire.raw_client import RawClient


def test_a_reserved_port_is_refused_until_a_broker_listens_there() -> None:
    ports = ReservedPorts()
    port = ports.reserve()
    end_point = EndPoint("127.0.0.1", port, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            RawClient("127.0.0.1", port)
        with open_listening_socket(end_point, receive_buffer_bytes=-1, backlog=1) as listening:
            assert bound_port(listening) == port
            RawClient("127.0.0.1", port).close()
    ports.close()


def test_no_other_program_gets_it() -> None:
    ports = ReservedPorts()
    port = ports.reserve()

    async def listen() -> None:
        other = await asyncio.start_server(print, "127.0.0.1", port, reuse_address=False)
        other.close()

    with pytest.raises(OSError, match="in use"):
        asyncio.run(listen())
    ports.close()
    asyncio.run(listen())


def test_ports_that_are_left_to_the_system_are_reserved() -> None:
    ports = ReservedPorts()
    first, second, *others = ports.in_listeners(
        "A://127.0.0.1:0, B://127.0.0.1:0,C://127.0.0.1:9092,D://:0,E://0.0.0.0:0"
    ).split(",")
    assert first.startswith("A://127.0.0.1:")
    assert second.startswith("B://127.0.0.1:")
    reserved = {int(each.rpartition(":")[2]) for each in (first, second)}
    assert len(reserved) == 2
    assert 0 not in reserved
    assert others == ["C://127.0.0.1:9092", "D://:0", "E://0.0.0.0:0"]
    ports.close()
    assert ports.in_listeners("") == ""
