"""A process with connections that each send one byte of a request a second, evenly over the second.

A process, so that its work does not delay what a client beside it measures. It gets the fields of a `Target` and the
number of connections as JSON, prints `ready` when they are there, and when its input ends whether all are still open.
"""

from __future__ import annotations

import json
import select
import struct
import sys
import time
from typing import Final

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.loads.hostile.slow_clients import Target, TlsFiles, connections, is_open

PERIOD_S: Final = 1.0


def _input_ends(wait_s: float | None) -> bool:
    """None: wait for it."""
    return bool(select.select([sys.stdin], [], [], wait_s if wait_s is None else max(wait_s, 0))[0])


def main() -> None:
    host, port, pid, tls, count = json.loads(sys.argv[1])
    frame = encode_request(RequestHeader(ApiKey.METADATA, 9, 1, "x" * 2_000), MetadataRequest(topics=[]))
    data = struct.pack(">i", len(frame)) + frame
    clients = connections(Target(host, port, pid, None if tls is None else TlsFiles(*tls)), count)
    print("ready", flush=True)
    started, sent = time.monotonic(), 0
    while not _input_ends(started + sent * PERIOD_S / max(count, 1) - time.monotonic() if clients else None):
        turn, index = divmod(sent, len(clients))
        clients[index].send(data[turn : turn + 1])
        sent += 1
    print("open" if all(map(is_open, clients)) else "closed", flush=True)


if __name__ == "__main__":
    main()
