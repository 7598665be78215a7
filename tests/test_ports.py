"""Two test processes never hand out the same port."""

from __future__ import annotations

import socket
from itertools import islice

import pytest

from tests.support.processes.ports import END, FIRST, LOOPBACK, Ports, free_port

BLOCK = 4


@pytest.fixture
def some() -> tuple[int, int]:
    """Where two blocks of ports begin and end that nobody else has."""
    ports = [free_port()]
    while len(ports) < 2 * BLOCK:
        port = free_port()
        ports = [*ports, port] if port == ports[-1] + 1 else [port]
    return ports[0], ports[-1] + 1


def test_each_port_is_handed_out_once_and_is_none_of_outgoing_connections() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    assert all(FIRST < port < END for port in ports)


def test_another_process_gets_other_ports(some: tuple[int, int]) -> None:
    ours, theirs = Ports(*some, BLOCK), Ports(*some, BLOCK)
    try:
        first, second = iter(ours), iter(theirs)
        assert {*islice(first, BLOCK - 1)} | {*islice(second, BLOCK - 1)} == {
            port for port in range(*some) if (port - some[0]) % BLOCK
        }
        for each in (first, second):
            with pytest.raises(RuntimeError, match="no port is free"):
                next(each)
    finally:
        ours.close()
        theirs.close()


def test_a_port_in_use_is_left_out(some: tuple[int, int]) -> None:
    ports = Ports(*some, 2 * BLOCK)
    try:
        with socket.socket() as taken:
            taken.bind((LOOPBACK, some[0] + 2))
            assert list(islice(ports, 3)) == [some[0] + 1, some[0] + 3, some[0] + 4]
    finally:
        ports.close()
