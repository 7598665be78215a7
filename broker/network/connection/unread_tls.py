"""What a TLS client had sent before its connection ended, and the event loop has not handed over.

Both event loops read a socket ahead into a buffer of the TLS library, also while reading is paused. asyncio hands the
buffer over when reading is resumed, after the end, too. uvloop does not, unless the client has sent close_notify.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import asyncio
    import ssl

READ_BYTES: Final = 64 * 1024


def unread_tls_bytes(transport: asyncio.Transport) -> bytes:
    """The decrypted rest of a transport that is closed: at most the 512 KB that a loop reads ahead."""
    from ssl import SSLError  # not needed without TLS

    tls = cast("ssl.SSLObject", transport.get_extra_info("ssl_object"))
    rest = bytearray()
    try:
        while chunk := tls.read(READ_BYTES):
            rest += chunk
    except SSLError:  # nothing is left, or only a part of a record
        pass
    return bytes(rest)
