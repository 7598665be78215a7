from __future__ import annotations

import pytest

from odradek.broker.config.endpoint import EndPoint
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.sockets.listening_socket import bound_port
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.testing.node.running.kept_ports import KeptPorts

END_POINT = EndPoint("127.0.0.1", 0, "PLAINTEXT", SecurityProtocol.PLAINTEXT)


def test_a_listener_gets_its_port_again_until_all_are_closed() -> None:
    ports = KeptPorts()
    first = ports.open(END_POINT, receive_buffer_bytes=-1, backlog=50)
    port = bound_port(first)
    first.close()
    second = ports.open(END_POINT, receive_buffer_bytes=-1, backlog=50)
    assert bound_port(second) == port
    assert not second.getblocking()
    second.close()
    with pytest.raises(StartupError, match="in use"):
        KeptPorts().open(END_POINT._replace(port=port), receive_buffer_bytes=-1, backlog=50)
    ports.close()
    free = KeptPorts()
    free.open(END_POINT._replace(port=port), receive_buffer_bytes=-1, backlog=50).close()
    free.close()
