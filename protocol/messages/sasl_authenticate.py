"""SaslAuthenticate (API key 36), versions 0-2, flexible from 2.

Carries one token of a SASL exchange.

v1   session_lifetime_ms: when the client has to authenticate again (KIP-368)
v2   flexible
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, byte_string, int16, int64, string


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes = byte_string("0+")


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible="2+"):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = byte_string("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
