"""Where delayed operations wait: in the timer for their time-out, and under each key whose change may complete them.

Whoever changes something (a high watermark moves, a member joins) calls `check_and_complete` with its key, and every
operation watched under that key gets to try. An operation is tried before it is watched, which usually spares the rest,
and again after, because the first attempt may itself have changed what it waits for.

Answers to Kafka's `DelayedOperationPurgatory`. Where Kafka leaves a completed operation in the watch lists until its keys
are checked or until `purge.interval.requests` such operations have gathered, and then walks all the lists, here it leaves
them all in the moment it completes: its watch lists are dicts, so that is O(1) for each of its keys. The lists hold nothing
dead, a key without operations is no key, no pause grows with the number of operations, and the purge interval has nothing
left to bound. `num_delayed` is exact for this purgatory although all of them share one timer.

Invariant: an operation is in the list of key `k` exactly if `k` is among its keys in `_keys`; it is in no list once it has
completed.

Exceptions: one from the operation that is being added goes to its caller, whose request it is. One from an operation that
`check_and_complete` meets is not the caller's, who merely moved a high watermark: it goes to the timer's `on_error`, and the
others still get their turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.system_timer import SystemTimer

OperationT = TypeVar("OperationT", bound=DelayedOperation)
