"""One connection as the request processor knows it."""

from __future__ import annotations

from typing import Final

from odradek.broker.zookeeper.jute import Identity

IDENTITIES_MAX: Final = 64
"""A client that proves more identities on one connection is refused: each is compared with each ACL."""


class Client:
    """Made by the connection; used only in the thread of the tree once the session is there."""

    __slots__ = ("address", "has_sent_junk", "identities", "is_gone", "last_operation", "session_id")

    def __init__(self, address: str) -> None:
        """`address`: the IP address of the client."""
        self.address = address
        self.session_id = 0
        self.identities: dict[Identity, None] = {Identity("ip", address): None}
        self.is_gone = False
        """No request of the client is applied any more. The event loop sets it, too."""
        self.has_sent_junk = False
        """The first such request of a connection is logged, and no other."""
        self.last_operation = "NA"
