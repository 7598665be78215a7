"""Injected process resources: file system, random numbers, thread pool, worker processes.

A broker uses those of its process. A simulation injects its own, so that the same seed always gives the same run.

Kafka: Uuid.randomUuid.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final, Protocol

from odradek.broker.machine.io_pool import HANDLER_CALLS_MAX, ThreadIoPool
from odradek.broker.machine.worker_processes import WorkerProcesses
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.disk.ports import IoPool, WorkerPool

UUID_FIXED_BITS: Final = 0xF << 76 | 0b11 << 62
"""Version and variant of a UUID, RFC 9562."""

UUID_4: Final = 4 << 76 | 0b10 << 62


class ClosableIoPool(IoPool, Protocol):
    async def settled(self) -> None:
        """Wait until nothing that was submitted is pending, also of what the results submit. What submits for ever must
        have stopped.
        """

    def close(self) -> None:
        """Finish what was submitted; results that come after this are dropped."""


class ClosableWorkerPool(WorkerPool, Protocol):
    def close(self) -> None:
        """End what is running; results that come after this are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Machine:
    """The process resources of one broker."""

    io_pool: ClosableIoPool
    workers: ClosableWorkerPool
    fs: FileSystem = field(default_factory=OsFileSystem)
    rng: random.Random = field(default_factory=random.SystemRandom)
    handler_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HANDLER_CALLS_MAX))
    """For calls in threads of `io_pool` that may wait for other services."""

    @classmethod
    def of_process(cls, loop: asyncio.AbstractEventLoop) -> Machine:
        """Threads and worker processes of this process, with their results on `loop`."""
        return cls(io_pool=ThreadIoPool(loop), workers=WorkerProcesses(loop))

    def new_uuid_hex(self) -> str:
        """A random UUID (version 4) as 32 hex digits."""
        return self.new_uuid().hex()

    def new_id(self) -> bytes:
        """A topic or cluster id: 16 random bytes, not reserved, whose text does not begin with a dash."""
        while True:
            candidate = self.new_uuid()
            if not uuid_to_text(candidate).startswith("-"):
                return candidate

    def new_uuid(self) -> bytes:
        """A random UUID (version 4): 16 bytes. Without the module `uuid`, which takes 1 % of a start to import."""
        return (self.rng.getrandbits(128) & ~UUID_FIXED_BITS | UUID_4).to_bytes(16, "big")
