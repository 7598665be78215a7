"""The reasons why a connection is closed. They are counted: an operator can tell a port scan from a broken client."""

from __future__ import annotations

from enum import Enum


class CloseReason(Enum):
    CLIENT_CLOSED = "closed by the client"
    CONNECTION_FAILED = "connection failed"
    IDLE = "idle for too long"
    TOO_MANY_CONNECTIONS = "too many connections"
    THROTTLED = "too many new connections of its address"
    INVALID_FRAME = "invalid frame"
    INVALID_REQUEST = "invalid request"
    NOT_AUTHENTICATED = "not authenticated"
    AUTHENTICATION_FAILED = "authentication failed"
    SESSION_EXPIRED = "the session has expired, and the client did not authenticate again"
    HANDSHAKE_FAILED = "SSL handshake failed"
    REQUEST_REFUSED = "request refused"
    """Also an error of Produce with acks=0, which has no response."""
    RECORDS_UNREADABLE = "records cannot be read"
    """A file was truncated or failed while it was being sent."""
    BROKEN_RESPONSE = "response cannot be encoded"
    SHUTDOWN = "the broker is shutting down"
