"""Tracks the partitions of an internal topic that this broker coordinates, and loads their state.

A broker coordinates the groups and transactional ids that hash to the partitions it leads. When it becomes leader of a
partition (`elect`), it reads the state from the log; until that is done the partition is *loading*, and clients get
COORDINATOR_LOAD_IN_PROGRESS. When it stops being the leader (`resign`), the state is dropped. `elect` and `resign`
carry the partition's leader epoch, because they may arrive out of order: an epoch older than the newest known is
ignored. Kafka checks it for groups only, so the transaction coordinator uses `elect_anew`, which does not.

Loading must not block the loop: a partition can hold millions of records. `SlicedWork` runs it a few milliseconds at
a time between other callbacks, one partition after the other, so that only one partition has a piece of its log in
memory. An almost empty partition is loaded within the `elect` call, so that the first client of a new broker gets no
COORDINATOR_LOAD_IN_PROGRESS.

Kafka: GroupMetadataManager.ownedPartitions, GroupMetadataManager.loadingPartitions,
GroupMetadataManager.epochForPartitionId, TransactionStateManager.loadingPartitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import KafkaError
from odradek.protocol.records.errors import CorruptRecordError, DecompressedSizeError
from odradek.timer.sliced_work import SlicedWork, Steps

if TYPE_CHECKING:
    from odradek.coordinator.load_times import LoadTimes
    from odradek.protocol.records.batch import AnyBatch
    from odradek.protocol.records.record import Record

_log = logging.getLogger(__name__)


NO_COORDINATOR_EPOCH = -1

BATCH_BYTES_MAX: Final = 100 * 1024 * 1024
"""Of the records of one batch, decompressed: as much as a request may bring (`socket.request.max.bytes`)."""


class LoadRefusedError(Exception):
    """The state of a partition must not be loaded: the partition stays loading until it is resigned."""


def records_of(batch: AnyBatch) -> Iterator[Record]:
    """The records of a batch of an internal topic. One that is too large is left out, and what follows it is loaded."""
    try:
        yield from batch.records(BATCH_BYTES_MAX)
    except DecompressedSizeError as error:
        log_left_out(batch, error)


def log_left_out(batch: AnyBatch, error: DecompressedSizeError) -> None:
    _log.error("The batch at offset %d is not loaded: %s", batch.base_offset, error)


class PartitionOwnership:
    """The partitions of one internal topic that this broker coordinates.

    A partition is unknown, loading, or owned. `load` is a generator that reads the state of a partition. When the
    partition is resigned meanwhile, the generator is abandoned and `on_unload` drops what it has built. `on_loaded` is
    called with each partition that has become owned. A `load` that raises LoadRefusedError leaves its partition
    loading.
    """

    __slots__ = ("_epochs", "_load", "_loading", "_name", "_on_loaded", "_on_unload", "_owned", "_work", "load_times")

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
        self.load_times: LoadTimes | None = None
        """None while metrics are off."""
        self._owned: set[int] = set()
        # Each load has its own token, so that an abandoned load does not continue when the partition is loaded again.
        self._loading: dict[int, object] = {}
        self._epochs: dict[int, int] = {}

    def is_owned(self, partition: int) -> bool:
        return partition in self._owned

    def is_loading(self, partition: int) -> bool:
        return partition in self._loading

    def epoch(self, partition: int) -> int:
        """The leader epoch of the last `elect` or `resign` of the partition; -1 if there was none."""
        return self._epochs.get(partition, NO_COORDINATOR_EPOCH)

    @property
    def is_anything_loading(self) -> bool:
        return bool(self._loading)

    def elect(self, partition: int, epoch: int) -> None:
        """This broker leads the partition as of the epoch: load it, unless it is owned or being loaded already."""
        if not self._accept_epoch(partition, epoch):
            _log.info("Not loading %s-%d in epoch %d: a later epoch is known", self._name, partition, epoch)
            return
        if partition in self._owned or partition in self._loading:
            return
        _log.info("Loading %s-%d for epoch %d", self._name, partition, epoch)
        token = self._loading[partition] = object()
        began_ms = self.load_times.now_ms() if self.load_times is not None else 0
        self._work.submit(self._loading_steps(partition, token, began_ms))

    def elect_anew(self, partition: int, epoch: int) -> None:
        """Load the partition also if it is owned or being loaded, or if a later epoch is known: a topic that was
        deleted and created again begins with epoch 0.
        """
        self.resign(partition, None)
        self._epochs.pop(partition, None)
        self.elect(partition, epoch)

    def resign(self, partition: int, epoch: int | None) -> None:
        """This broker no longer leads the partition: drop its state. Without an epoch (the replica is deleted) no
        epoch is checked.
        """
        if epoch is not None and not self._accept_epoch(partition, epoch):
            _log.info("Not unloading %s-%d in epoch %d: a later epoch is known", self._name, partition, epoch)
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

    def _loading_steps(self, partition: int, token: object, began_ms: int) -> Steps:
        is_refused = False
        try:
            if self._loading.get(partition) is not token:
                return  # resigned before the load began
            for wait in self._load(partition):
                yield wait
                if self._loading.get(partition) is not token:
                    return
        except (KafkaError, CorruptRecordError, OSError) as error:
            _log.error("Error loading %s-%d: %s", self._name, partition, error)
        except LoadRefusedError as error:
            is_refused = True
            _log.error("Not loading %s-%d: %s", self._name, partition, error)
        finally:
            # As in Kafka, the partition is served even if loading failed: with what was loaded until then.
            if self._loading.get(partition) is token and not is_refused:
                del self._loading[partition]
                self._owned.add(partition)
                if self.load_times is not None:
                    self.load_times.loaded(began_ms)
                _log.info("Finished loading %s-%d", self._name, partition)
                self._on_loaded(partition)
