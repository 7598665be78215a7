"""What a broker asks of the machine it runs on besides time and a network: a disk, chance, and places to work.

A real broker has threads, worker processes and the system's randomness. A simulation brings its own, so that the same
seed always gives the same run.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from odradek.broker.machine.io_pool import ThreadIoPool
from odradek.broker.machine.worker_processes import WorkerProcesses
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.disk.ports import IoPool, WorkerPool

if TYPE_CHECKING:
    import asyncio


class ClosableIoPool(IoPool, Protocol):
    def close(self) -> None:
        """Finish what was submitted; results that come after this are dropped."""


class ClosableWorkerPool(WorkerPool, Protocol):
    def close(self) -> None:
        """End what is running; results that come after this are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """See the module."""

    io_pool: ClosableIoPool
    workers: ClosableWorkerPool
    fs: FileSystem = field(default_factory=OsFileSystem)
    rng: random.Random = field(default_factory=random.SystemRandom)

    @classmethod
    def of_process(cls, loop: asyncio.AbstractEventLoop) -> Machine:
        """Threads and processes of this process, whose results come to `loop`."""
        return cls(io_pool=ThreadIoPool(loop), workers=WorkerProcesses(loop))

    def new_uuid_hex(self) -> str:
        """A random UUID (version 4) as 32 hex digits."""
        return self._new_uuid().hex

    def new_id(self) -> bytes:
        """A topic or cluster id: 16 random bytes whose text does not begin with a dash, nor reserved."""
        while True:
            candidate = self._new_uuid().bytes
            if not uuid_to_text(candidate).startswith("-"):
                return candidate

    def _new_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.rng.getrandbits(128), version=4)
