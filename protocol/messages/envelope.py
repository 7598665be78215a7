"""Envelope (API key 58), version 0, flexible.

Forwards a client's request, header and all, to the controller, with the principal it was made by (KIP-590).
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, byte_string, int16


class EnvelopeRequest(Request, key=58, versions="0", flexible="0+"):
    request_data: bytes = byte_string("0+")
    request_principal: bytes | None = byte_string("0+", nullable="0+")
    client_host_address: bytes = byte_string("0+")


class EnvelopeResponse(Response, key=58, versions="0", flexible="0+"):
    response_data: bytes | None = byte_string("0+", nullable="0+", default=None)
    error_code: int = int16("0+")
