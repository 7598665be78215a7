"""SaslHandshake (API key 17), versions 0-1, no flexible version.

Chooses a SASL mechanism. The version cannot grow: clients up to 2.4 negotiate it wrongly (KAFKA-9577).

v0   the tokens that follow are bare frames, not requests
v1   the tokens that follow are wrapped in SaslAuthenticate (KIP-152)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import STRING, Request, Response, array, int16, string


class SaslHandshakeRequest(Request, key=17, versions="0-1", flexible="none"):
    mechanism: str = string("0+")


class SaslHandshakeResponse(Response, key=17, versions="0-1", flexible="none"):
    error_code: int = int16("0+")
    mechanisms: list[str] = array(STRING, "0+")
