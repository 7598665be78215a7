"""Clients that connect to a TLS listener at once: all have their TCP connection before the first handshake begins."""

from __future__ import annotations

import selectors
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.support.certificates import Authority
from tests.support.processes.ports import free_port

PORT = free_port()
CLIENTS = 1000
ROUNDS = 3
TIMEOUT_S = 60
AUTHORITY = Authority()


def settings(directory: Path) -> Mapping[str, str]:
    """A TLS listener whose key is RSA of 2,048 bits, which takes more time than an elliptic curve."""
    identity = AUTHORITY.issue("broker", key=rsa.generate_private_key(65_537, 2048))
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()},CLIENTS://127.0.0.1:{PORT}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity.write_pem(directory / "broker.pem")),
    }


def run(watched: WatchedBroker, count: int) -> None:
    """`CLIENTS` clients, whatever the count."""
    watched.broker.start()
    print_header(f"{CLIENTS} clients connect over TLS at once, RSA 2048")
    for number in range(ROUNDS):
        sockets = [socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S) for _ in range(CLIENTS)]
        with watched.situation(f"handshakes, round {number + 1}"):
            connected = shake_hands(sockets)
        for connection in connected:
            connection.close()


def shake_hands(sockets: list[socket.socket]) -> list[ssl.SSLSocket]:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    selector, done = selectors.DefaultSelector(), []
    for plain in sockets:
        plain.setblocking(False)
        connection = context.wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=False)
        selector.register(connection, selectors.EVENT_READ)
        step(connection)
    while len(done) < len(sockets):
        ready = selector.select(TIMEOUT_S)
        assert ready, f"{len(sockets) - len(done)} handshakes do not end"
        for key, _ in ready:
            connection = key.fileobj  # type: ignore[assignment]
            if step(connection):
                selector.unregister(connection)
                done.append(connection)
    selector.close()
    return done


def step(connection: ssl.SSLSocket) -> bool:
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
