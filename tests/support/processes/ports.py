"""Ports of the loopback interface for servers that a test starts, stops and starts again.

Several test processes run at once, so a port that was free a moment ago may be taken when its server starts. Two rules
keep a port for the process that got it:

- The ports are below 32768. From there on, Linux chooses ports for outgoing connections and for listeners on port 0.
- A process claims ports in blocks. It holds a block for as long as it lives: a UDP socket is bound to the first port.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Final

FIRST: Final = 10_000
END: Final = 32_768
BLOCK: Final = 128
LOOPBACK: Final = "127.0.0.1"


def free_port() -> int:
    """A TCP port that is free, and that no other caller gets. Raises RuntimeError when all of them are taken."""
    return next(_PORTS)


class Ports:
    """The ports that this process hands out, each once."""

    def __init__(self, first: int = FIRST, end: int = END, block: int = BLOCK) -> None:
        self._blocks = range(first, end, block)
        self._block = block
        self._claims: list[socket.socket] = []

    def __iter__(self) -> Iterator[int]:
        own_first = os.getpid() % len(self._blocks)  # ports that were just in use are left alone for a while
        for start in (*self._blocks[own_first:], *self._blocks[:own_first]):
            if self._claim(start):
                yield from filter(_is_free, range(start + 1, start + self._block))
        raise RuntimeError(f"no port is free from {self._blocks.start} to {self._blocks.stop - 1}")

    def close(self) -> None:
        """Give the blocks to others."""
        for claim in self._claims:
            claim.close()

    def _claim(self, start: int) -> bool:
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((LOOPBACK, start))
        except OSError:
            claim.close()
            return False
        self._claims.append(claim)
        return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


_PORTS: Final = iter(Ports())
