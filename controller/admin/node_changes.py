"""Listens below one node for sequential nodes, each of which notifies all brokers of one change.

A notification names what has changed, without its value: the listener reads the *current* value, so late and repeated
notifications are harmless. Numbers already processed are skipped; any broker deletes nodes older than 15 minutes.

Kafka: ZkNodeChangeNotificationListener.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.tree.metadata_tree import UNANSWERED, Delete, GetData, NoNode, TreeError, WatchEvent
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import submit_all
from odradek.controller.znodes.znode_json import BadZnode

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000

NOTIFICATIONS_AT_ONCE: Final = 100
"""Notifications that are read together. One by one, the 10,000 of one CreateAcls took 20 s."""

LOGGED_BYTES: Final = 200
"""Of the data of a notification, which may have a megabyte."""

ProcessNotification: TypeAlias = Callable[[str, "bytes | None"], Awaitable[None]]
"""Gets the path of a notification and its data. If it raises an error of `UNANSWERED`, the round ends, and the next
change begins with the same notification. Any other error is of this notification alone, such as a node that the broker
may not read: it is logged, and the next one follows."""


class ChangeListener:
    """Calls `_read`, in a task, after each change that a watch reports and after each new session.

    A TreeError that it raises is logged, and the next change calls it again. Implements SessionListener.
    """

    def __init__(self, client: MetadataClient, path: str) -> None:
        self._client = client
        self._path = path
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        client.tree.add_session_listener(self)

    @abstractmethod
    async def _read(self) -> None:
        """Read what has changed below the path, with `_on_watch` as the watcher. Raises: TreeError."""

    def listen(self) -> None:
        """Begin to process the changes that come."""
        self._task = asyncio.get_running_loop().create_task(self._listen(), name=f"changes of {self._path}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def shutdown(self) -> None:
        """Stop, and wait for the end of it."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    async def session_lost(self) -> None:
        """Implements SessionListener."""

    def session_started(self) -> None:
        """Implements SessionListener: the watch is lost, so read again."""
        self._changed.set()

    def _on_watch(self, _: WatchEvent) -> None:
        self._changed.set()

    async def _listen(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._read()
            except TreeError as error:
                logger.error("Error while processing changes of %s: %r", self._path, error)


class NodeChangeListener(ChangeListener):
    """Processes the notifications below `parent` whose names begin with `prefix`, one at a time, oldest first.

    `read_all` is called after a lost session: notifications of its time may have expired. A TreeError that it raises
    is logged, and the next change calls it again.
    """

    def __init__(
        self,
        client: MetadataClient,
        clock: Clock,
        parent: str,
        prefix: str,
        process: ProcessNotification,
        read_all: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(client, parent)
        self._clock = clock
        self._prefix = prefix
        self._process = process
        self._read_all = read_all
        self._has_lost_session = False
        self._last_executed_change = -1

    async def process_notifications(self) -> None:
        """Process the notifications that are there, and watch for more."""
        names = await self._client.numbered_children(self._path, self._on_watch)
        numbered = ((znodes.sequence_number(name, self._prefix), name) for name in names)
        new = [(number, f"{self._path}/{name}") for number, name in numbered if number > self._last_executed_change]
        for first in range(0, len(new), NOTIFICATIONS_AT_ONCE):
            some = new[first : first + NOTIFICATIONS_AT_ONCE]
            nodes = await submit_all(self._client.tree, [GetData(path) for _, path in some])
            for (number, path), node in zip(some, nodes, strict=True):
                if isinstance(node, UNANSWERED):
                    raise node
                if not isinstance(node, TreeError):
                    await self._process_one(path, node.data)
                elif not isinstance(node, NoNode):
                    logger.error("The change notification %s cannot be read: %s", path, node)
                self._last_executed_change = number
        await self._purge_obsolete(names)

    async def _process_one(self, path: str, data: bytes | None) -> None:
        """Kafka: ZkNodeChangeNotificationListener.processNotification."""
        try:
            await self._process(path, data)
        except UNANSWERED:
            raise
        except (TreeError, BadZnode) as error:
            logger.error("error processing change notification %r from %s: %s", _start(data), path, error)
        except Exception:
            logger.exception("error processing change notification %r from %s", _start(data), path)

    async def skip_notifications(self) -> None:
        """Watch for more notifications only, for a caller that reads all values after that."""
        names = await self._client.numbered_children(self._path, self._on_watch)
        numbers = (znodes.sequence_number(name, self._prefix) for name in names)
        self._last_executed_change = max(numbers, default=self._last_executed_change)
        await self._purge_obsolete(names)

    async def session_lost(self) -> None:
        """Implements SessionListener."""
        self._has_lost_session = True

    async def _read(self) -> None:
        await self.process_notifications()
        if self._has_lost_session and self._read_all is not None:
            await self._read_all()
        self._has_lost_session = False

    async def _purge_obsolete(self, names: list[str]) -> None:
        now_ms = self._clock.time_ms()
        for name in names:
            path = f"{self._path}/{name}"
            (node,) = await self._client.tree.submit([GetData(path)])
            if isinstance(node, TreeError):  # it is gone, or may not be read
                continue
            if now_ms - node.stat.ctime_ms <= CHANGE_EXPIRATION_MS:
                return
            logger.debug("Purging change notification %s", path)
            await self._client.tree.submit([Delete(path)])


def _start(data: bytes | None) -> bytes | None:
    return None if data is None else data[:LOGGED_BYTES]
