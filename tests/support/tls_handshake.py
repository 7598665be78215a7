"""A TLS handshake without sockets."""

from __future__ import annotations

import ssl


def handshake_in_memory(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost", session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """The server's end and the client's, after the handshake. Raises: SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = server.wrap_bio(to_server, to_client, server_side=True)
    connecting = client.wrap_bio(to_client, to_server, server_hostname=host, session=session)
    for _ in range(6):
        for end in (connecting, accepting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return accepting, connecting
