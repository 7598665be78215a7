"""Recognises other protocols on a Kafka port, so that the log line of the closed connection names them."""

from __future__ import annotations

from typing import Final

_FIRST_WORDS: Final = {
    b"GET ": "an HTTP request",
    b"POST": "an HTTP request",
    b"HEAD": "an HTTP request",
    b"PUT ": "an HTTP request",
    b"OPTI": "an HTTP request",
    b"PRI ": "an HTTP/2 request",
    b"CONN": "an HTTP request",
    b"SSH-": "an SSH client",
}
_TLS_HANDSHAKE: Final = b"\x16\x03"


def describe_garbage(error: Exception, leading: bytes) -> str:
    """The error, and the protocol that the first bytes of the frame look like."""
    if leading[:2] == _TLS_HANDSHAKE:
        return f"{error}; the client speaks TLS, but this listener is PLAINTEXT"
    return f"{error}{describe_first_bytes(leading)}"


def describe_first_bytes(leading: bytes) -> str:
    """What the first bytes of a connection look like, as the end of a sentence; empty if they are not known."""
    guess = _FIRST_WORDS.get(leading[:4])
    return "" if guess is None else f"; it looks like {guess}"
