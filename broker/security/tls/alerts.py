"""A context that keeps the alert of a failed handshake.

The event loops drop what OpenSSL has written for the other end when a handshake fails. Without the alert a client takes
the failure for a lost connection, and tries again until its time is over; a broker that another one refuses logs no
reason.

Kafka: SslTransportLayer.handshakeFailure.
"""

from __future__ import annotations

import ssl
from typing import Final

_ALERT: Final = "alert"


class _KeepingObject(ssl.SSLObject):
    """The SSLError of its failed handshake has the bytes for the other end."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            setattr(error, _ALERT, self.outgoing.read())
            raise


class AlertKeepingContext(ssl.SSLContext):
    """Handshakes of its connections fail with errors for which `alert_of` has the alert."""

    sslobject_class = _KeepingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _KeepingObject)
        made.outgoing = outgoing
        return made


def alert_of(error: ssl.SSLError) -> bytes:
    """The bytes for the other end after a failed handshake; none, if OpenSSL has written none."""
    alert: bytes = getattr(error, _ALERT, b"")
    return alert
