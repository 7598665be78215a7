"""The address of a client as Java writes it: entries of ACLs, the audit log, and members of groups have this form.

Kafka: InetAddress.getHostAddress, by which AclAuthorizer compares; GroupCoordinatorAdapter.joinGroup.
"""

from __future__ import annotations

import socket
import struct
from functools import lru_cache


@lru_cache(maxsize=1024)
def java_host(text: str) -> str:
    """`0:0:0:0:0:0:0:1` for `::1`; an IPv4 address and any other text stay as they are."""
    address, percent, scope = text.partition("%")
    try:
        groups = struct.unpack(">8H", socket.inet_pton(socket.AF_INET6, address))
    except OSError:
        return text
    return ":".join(f"{group:x}" for group in groups) + percent + scope
