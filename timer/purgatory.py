"""Where delayed operations wait: in the timer for their time-out, and under each key whose change may complete them.

After a change (a high watermark moves, a member joins) `check_and_complete` is called with its key, and tries every
operation watched under that key. An operation is tried before it is watched, because most complete then, and again
after, because the first attempt may have changed the very thing it waits for.

Kafka: DelayedOperationPurgatory. There a completed operation stays in the watch lists until its keys are checked, or
until `purge.interval.requests` such operations have gathered and all lists are walked. Here it leaves all its lists
when it completes. They are dicts, so that is O(1) for each key; they hold no completed operation and no empty list, no
pause grows with the number of operations, and `purge.interval.requests` has no effect. `num_delayed` is exact for this
purgatory although all of them share one timer.

Invariant: an operation is in the list of a key exactly if the key is among its `watch_keys`; a completed operation
has none.

Exceptions: one from the operation that is being added is raised to the caller, whose request it is. One from an
operation that `check_and_complete` tries is not the caller's fault: it goes to the timer's `on_error` (without one it
is raised after all operations have been tried).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.system_timer import SystemTimer

OperationT = TypeVar("OperationT", bound=DelayedOperation)


class DelayedOperationPurgatory(Generic[OperationT]):
    """Delayed operations of one kind."""

    __slots__ = ("_num_delayed", "_timer", "name", "watchers")

    def __init__(self, name: str, timer: SystemTimer) -> None:
        self.name = name
        self._timer = timer
        self.watchers: dict[Hashable, dict[DelayedOperation, OperationT]] = {}
        """The operations under each key that has any, in the order of arrival. Others only look whether a key is there:
        cheaper than a call."""
        self._num_delayed = 0

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[Hashable]) -> bool:
        """Complete `operation` now if possible, else let it wait under `keys`; whether this call completed it."""
        if operation.try_complete():
            return True
        if operation.is_completed:
            return False
        self._watch(operation, keys)
        try:
            if operation.try_complete():
                return True
        except BaseException:
            # The caller answers with this error; a time-out later must not answer once more.
            self.forget(operation)
            raise
        if not operation.is_completed:
            self._timer.add(operation)
        return False

    def watch(self, operation: OperationT, keys: Iterable[Hashable]) -> None:
        """Let an operation wait that the caller has tried, and whose attempt changes nothing that it waits for."""
        self._watch(operation, keys)
        self._timer.add(operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Let the operations watched under `key` try to complete; how many did."""
        watchers = self.watchers.get(key)
        return 0 if watchers is None else self.check(key, list(watchers.values()))

    def waiting_under(self, key: Hashable) -> list[OperationT]:
        """The operations watched under `key`, in the order in which they came."""
        watchers = self.watchers.get(key)
        return [] if watchers is None else list(watchers.values())

    def check(self, key: Hashable, operations: Iterable[OperationT]) -> int:
        """Let those of `operations` try to complete that are still watched under `key`; how many did."""
        completed = 0
        failed = False
        for operation in operations:
            if operation not in self.watchers.get(key, ()):
                continue  # completed or cancelled by one that came before it
            try:
                if operation.try_complete_for(key):
                    completed += 1
            except Exception as error:  # noqa: BLE001 - a bug of another's request, see above
                self._timer.report_error(operation, error)
                failed = True
        if failed:
            self._timer.raise_unhandled()
        return completed

    def forget(self, operation: DelayedOperation) -> None:
        """Take `operation` out of every watch list; called by the operation as it completes."""
        if operation.watched_by is not self:
            return
        for key in operation.watch_keys:
            watchers = self.watchers[key]
            del watchers[operation]
            if not watchers:
                del self.watchers[key]
        operation.watch_keys = []
        operation.watched_by = None
        self._num_delayed -= 1

    def watch_also(self, operation: DelayedOperation, key: Hashable) -> None:
        """Let an operation that waits here wait under one more key, under which it does not wait yet."""
        watched = self.watchers[operation.watch_keys[0]][operation]
        operation.watch_keys.append(key)
        self.watchers.setdefault(key, {})[operation] = watched

    @property
    def watched(self) -> int:
        """The sizes of all watch lists together: an operation counts once for each key. In Kafka: PurgatorySize."""
        return sum(len(watchers) for watchers in self.watchers.values())

    @property
    def num_delayed(self) -> int:
        """The number of operations that wait. In Kafka: NumDelayedOperations."""
        return self._num_delayed

    @property
    def num_keys(self) -> int:
        """The number of keys under which anything waits."""
        return len(self.watchers)

    def _watch(self, operation: OperationT, keys: Iterable[Hashable]) -> None:
        watch_keys = list(dict.fromkeys(keys))
        if not watch_keys:
            raise ValueError(f"an operation of purgatory {self.name} without a key could complete only by time-out")
        if operation.watched_by is not None:
            raise ValueError(f"{operation!r} is watched already")
        operation.watched_by = self
        operation.watch_keys = watch_keys
        for key in watch_keys:
            self.watchers.setdefault(key, {})[operation] = operation
        self._num_delayed += 1
