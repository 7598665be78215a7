"""Which partitions of an internal topic this broker coordinates, and the loading of their state.

A broker coordinates whatever hashes to the partitions it leads. When it becomes leader of one (`elect`), the state
has to be read from the log first; until that is done the partition is *loading*, and clients are told to wait. When
it stops being the leader (`resign`) the state is dropped. Elections and resignations carry the partition's leader
epoch, because they may be seen out of order: one that is older than the newest known is ignored.

Loading must not stall the loop: a partition can hold millions of records. `SlicedWork` runs it a few milliseconds at
a time between other callbacks, and one partition after the other, so that only one of them has a piece of its log in
memory. An almost empty partition, which is what a new broker has, is loaded on the spot, so that the first client need
not be sent away.

Kafka: the bookkeeping of GroupMetadataManager and TransactionStateManager (ownedPartitions, loadingPartitions,
epochForPartitionId), and the KafkaScheduler thread they load on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from odradek.protocol.errors import KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.timer.sliced_work import SlicedWork, Steps

_log = logging.getLogger(__name__)


NO_COORDINATOR_EPOCH = -1


class PartitionOwnership:
    """The partitions of one internal topic that are coordinated here.

    A partition is unknown, loading, or owned. `load` is a generator that reads its state in; it is abandoned half-way
    when the partition is resigned, and `on_unload` then drops what it has built. `on_loaded` hears of partitions that
    have become owned.
    """

    __slots__ = ("_epochs", "_load", "_loading", "_name", "_on_loaded", "_on_unload", "_owned", "_work")

    def __init__(
        self,
        name: str,
        work: SlicedWork,
        *,
        load: Callable[[int], Steps],
        on_unload: Callable[[int], None],
        on_loaded: Callable[[int], None] = lambda partition: None,
    ) -> None:
        self._name = name
        self._work = work
        self._load = load
        self._on_unload = on_unload
        self._on_loaded = on_loaded
        self._owned: set[int] = set()
        # Each load has a token of its own, so that one that was abandoned does not mistake a later one for itself.
        self._loading: dict[int, object] = {}
        self._epochs: dict[int, int] = {}

    def is_owned(self, partition: int) -> bool:
        return partition in self._owned

    def is_loading(self, partition: int) -> bool:
        return partition in self._loading

    def epoch(self, partition: int) -> int:
        """The leader epoch under which the partition was last elected or resigned here; -1 if it never was."""
        return self._epochs.get(partition, NO_COORDINATOR_EPOCH)

    @property
    def is_anything_loading(self) -> bool:
        return bool(self._loading)

    def elect(self, partition: int, epoch: int) -> None:
        """This broker leads the partition as of the epoch: load it, unless it is owned or being loaded already."""
        if not self._accept_epoch(partition, epoch):
            _log.info("Not loading %s-%d in epoch %d: it is stale", self._name, partition, epoch)
            return
        if partition in self._owned or partition in self._loading:
            return
        _log.info("Loading %s-%d for epoch %d", self._name, partition, epoch)
        token = self._loading[partition] = object()
        self._work.submit(self._loading_steps(partition, token))

    def resign(self, partition: int, epoch: int | None) -> None:
        """This broker does not lead the partition any more; without an epoch (the replica is deleted)
        unconditionally.
        """
        if epoch is not None and not self._accept_epoch(partition, epoch):
            _log.info("Not unloading %s-%d in epoch %d: it is stale", self._name, partition, epoch)
            return
        _log.info("Unloading %s-%d", self._name, partition)
        self._owned.discard(partition)
        self._loading.pop(partition, None)
        self._on_unload(partition)

    def resign_all(self) -> None:
        for partition in sorted(self._owned | self._loading.keys()):
            self.resign(partition, None)

    def _accept_epoch(self, partition: int, epoch: int) -> bool:
        current = self._epochs.get(partition)
        if current is not None and epoch < current:
            return False
        self._epochs[partition] = epoch
        return True

    def _loading_steps(self, partition: int, token: object) -> Steps:
        try:
            if self._loading.get(partition) is not token:
                return  # given up before its turn has come
            for wait in self._load(partition):
                yield wait
                if self._loading.get(partition) is not token:
                    return
        except (KafkaError, CorruptRecordError, OSError) as error:
            _log.error("Error loading %s-%d: %s", self._name, partition, error)
        finally:
            # Whatever went wrong: better a coordinator without this partition's past than none at all (as in Kafka).
            if self._loading.get(partition) is token:
                del self._loading[partition]
                self._owned.add(partition)
                _log.info("Finished loading %s-%d", self._name, partition)
                self._on_loaded(partition)
