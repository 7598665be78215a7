"""Questions that wait for a change inside the broker, on its event loop.

Each kind of change has a counter. A part of the broker that changes calls `announce`; a waiting question wakes in the
next turn of the loop, when the change is whole, and looks again. Nothing sleeps or polls. When the broker stops, every
wait ends with `BrokerStopped`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from odradek.testing.errors import BrokerStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

T = TypeVar("T")


class Change(Enum):
    """What can be waited for."""

    RECORDS = "records"
    """A partition to which a question has subscribed."""
    METADATA = "metadata"
    """Topics and partitions of the broker."""
    REQUESTS = "requests"
    """A request is over."""
    EXCHANGES = "exchanges"
    """A request of this broker to another one is over."""
    GROUPS = "groups"
    TRANSACTIONS = "transactions"


class Waits:
    """The waiting questions of one broker."""

    def __init__(self) -> None:
        self._counts: Counter[Change] = Counter()
        self._waiting: dict[Change, set[asyncio.Future[None]]] = {}
        self._closed = ""

    def count(self, kind: Change) -> int:
        """How many changes of the kind there were."""
        return self._counts[kind]

    @property
    def waiting_count(self) -> int:
        """The questions that wait now."""
        return len(set().union(*self._waiting.values()))

    def announce(self, kind: Change) -> None:
        """Something of this kind changes now."""
        self._counts[kind] += 1
        for future in self._waiting.get(kind, ()):
            if not future.done():
                future.set_result(None)

    async def until(self, look: Callable[[], T | None], kinds: Collection[Change], timeout_s: float) -> T | None:
        """What `look` finds, now or after a change of these kinds; None if the time is over.

        Raises: BrokerStopped.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        while (found := look()) is None:
            left_s = end - loop.time()
            if left_s <= 0:
                return None
            if not await self._change(kinds, left_s):
                return look()
        return found

    async def _change(self, kinds: Collection[Change], timeout_s: float) -> bool:
        """Wait for the next change; False if there is none in time."""
        if self._closed:
            raise BrokerStopped(self._closed)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for kind in kinds:
            self._waiting.setdefault(kind, set()).add(future)
        try:
            done, _ = await asyncio.wait([future], timeout=timeout_s)
            if done:
                future.result()
            return bool(done)
        finally:
            for kind in kinds:
                self._waiting[kind].discard(future)

    def close(self, reason: str) -> None:
        """End all waits, and refuse new ones: the broker stops."""
        self._closed = reason
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(BrokerStopped(reason))
