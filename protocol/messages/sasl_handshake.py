"""SaslHandshake (API key 17), versions 0-1, no flexible version."""

from __future__ import annotations

from odradek.protocol.schema import STRING, Request, Response, array, int16, string


class SaslHandshakeRequest(Request, key=17, versions="0-1", flexible="none"):
    mechanism: str = string("0+")


class SaslHandshakeResponse(Response, key=17, versions="0-1", flexible="none"):
    error_code: int = int16("0+")
    mechanisms: list[str] = array(STRING, "0+")
