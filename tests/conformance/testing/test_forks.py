"""Forked processes, each in a script of its own: this suite has threads that a fork must not copy."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap

import pytest

from odradek.testing.node.forks import _sockets_at

CHILD_AND_PARENT = """
import os, socket, struct, sys
from odradek.testing import Broker, Cluster
from odradek.testing.errors import BrokerStopped
from tests.support.testing import asking

def connected(address):
    host, _, port = address.rpartition(":")
    client = socket.create_connection((host, int(port)), 20)
    client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))  # ApiVersions 0
    assert len(client.recv(8, socket.MSG_WAITALL)) == 8  # so the broker has accepted the connection
    return client

def fork():
    '''The process id, 0 in the child, which has begun then; the child waits in `release` until the parent calls it.'''
    (waits, goes), (begins, has_begun) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(goes)
        os.write(has_begun, b"1")
        return 0, lambda: os.read(waits, 1)
    os.read(begins, 1)
    return child, lambda: os.close(goes)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD_AND_PARENT + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("listener", ["127.0.0.1:0", ":0"])
def test_a_fork_has_no_socket_of_a_broker_in_a_thread(listener: str) -> None:
    run(f"""
        broker = Broker(listeners="PLAINTEXT://{listener}").start()
        client = connected(broker.bootstrap_servers)
        child, release = fork()
        if child == 0:
            client.sendall(b"")  # the client's end is open here
            release()
            os._exit(0)
        port = client.getpeername()[1]
        broker.stop()
        while client.recv(4096):
            pass
        try:
            socket.create_connection(("127.0.0.1", port), 20)
        except ConnectionRefusedError:
            pass
        else:
            raise AssertionError
        release()
        assert ended(child) == 0
    """)


@pytest.mark.parametrize("own_process", [False, True])
def test_a_fork_is_a_client_that_cannot_ask_and_stops_nothing(own_process: bool) -> None:
    run(f"""
        with Broker(own_process={own_process}) as broker:
            child, release = fork()
            if child == 0:
                connected(broker.bootstrap_servers)
                try:
                    broker.ask("process_id")
                except BrokerStopped as error:
                    assert "has forked this one" in str(error)
                else:
                    raise AssertionError
                broker.stop()
                with broker:  # another one
                    connected(broker.bootstrap_servers)
                sys.exit()  # what is to be done at the end of the process is done
            assert ended(child) == 0
            connected(broker.bootstrap_servers)
            broker.ask("process_id")
    """)


def test_a_fork_leaves_a_broker_that_it_does_not_stop() -> None:
    run("""
        with Broker() as broker:
            child, release = fork()
            if child == 0:
                sys.exit()
            assert ended(child) == 0
            broker.ask("process_id")
    """)


def test_a_cluster_does_not_notice_that_a_fork_leaves_it() -> None:
    run("""
        with Cluster(1, own_process=False) as cluster:
            child, release = fork()
            if child == 0:
                release()
                sys.exit()
            cluster.zookeeper.stop()
            cluster.zookeeper.start()  # the port is free
            cluster.wait_until_settled()
            release()
            assert ended(child) == 0
            assert cluster.controller == 0
    """)


def test_the_sockets_of_a_listener_are_found_and_no_others() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as accepted,
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
    ):
        address = listening.getsockname()
        datagrams.bind(address)
        own = {listening.fileno(), accepted.fileno()}
        assert set(_sockets_at({address})) == own
        assert set(_sockets_at({("0.0.0.0", address[1])})) == own
        assert _sockets_at({("127.0.0.2", address[1])}) == []
        assert client.fileno() not in own


def test_a_default_timeout_does_not_change_sockets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as other:
        socket.setdefaulttimeout(5)
        try:
            assert _sockets_at({listening.getsockname()}) == [listening.fileno()]
            assert socket.getdefaulttimeout() == 5
        finally:
            socket.setdefaulttimeout(None)
        with socket.socket(fileno=other.detach()) as same:
            assert same.getblocking()
