"""The principal of a client, as it travels inside an Envelope (KIP-590). Behind an int16 version in the envelope."""

from __future__ import annotations

from odradek.protocol.codec.schema import Message, boolean, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = boolean("0+")
