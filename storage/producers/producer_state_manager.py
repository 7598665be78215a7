"""The producers of one log: their states, their open transactions, and the snapshots on disk.

A snapshot at offset N contains the state after every batch below N. One is written at each roll and at a clean close. A
start loads the newest one and replays the batches after it. Snapshots contain only the last batch of each producer.

The data of a transaction is unstable while it is open (`ongoing`) or its marker is not yet below the high watermark
(`unreplicated`). The first unstable offset bounds readers of committed data.

Invariants: `map_end_offset` is the offset up to which batches are applied; every entry with an open transaction has it
in `ongoing`, which is in the order of the log; `unreplicated` is in the order of the markers; the CRC of a snapshot
covers its count and entries; a snapshot with a wrong CRC is deleted, and the next older one is loaded.

Kafka: ProducerStateManager, SnapshotFile.
"""

from __future__ import annotations

import logging
import os
from bisect import insort
from collections import OrderedDict
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.layout import NO_PRODUCER_ID, NO_TIMESTAMP
from odradek.storage import log_files
from odradek.storage.config.producer_config import ProducerStateManagerConfig
from odradek.storage.disk.disk_space import is_no_space
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.producers.producer_state import (
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateEntry,
    TxnMetadata,
    VerificationState,
)
from odradek.storage.segment.transaction_index import AbortedTxn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.storage.append_info import AppendOrigin
    from odradek.storage.disk.file_system import FileSystem

SNAPSHOT_VERSION: Final = 1
_HEADER: Final = Struct(">hIi")  # version, CRC, count
_CRC_START: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")

EMPTY_SNAPSHOT_BYTES: Final = _HEADER.size

logger = logging.getLogger(__name__)


class ProducerMemory(NamedTuple):
    """The producer state of a log up to an offset. Unlike a snapshot, it has the last five batches of each producer and
    the completed transactions. Can be pickled.
    """

    producers: dict[int, ProducerStateEntry]
    ongoing: OrderedDict[int, TxnMetadata]
    unreplicated: OrderedDict[int, TxnMetadata]
    end_offset: int


class CorruptSnapshotError(Exception):
    """A damaged snapshot file."""


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Kafka: ProducerStateManager.writeSnapshot."""
    packed: list[bytes] = []
    for entry in entries:  # a log may have 100,000, and a roll waits
        last_seq, last_offset, offset_delta, _ = entry.last_batch
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last_seq,
                last_offset,
                offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return SNAPSHOT_VERSION.to_bytes(2, "big") + crc32c(body, 0, 0).to_bytes(4, "big") + body


def decode_snapshot(content: bytes) -> list[ProducerStateEntry]:
    """Kafka: ProducerStateManager.readSnapshot."""
    if len(content) < _HEADER.size:
        raise CorruptSnapshotError(f"Snapshot of {len(content)} bytes is shorter than its header")
    version, crc, count = _HEADER.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"Snapshot contained an unknown file version {version}")
    computed = crc32c(content[_CRC_START:], 0, 0)
    if crc != computed:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
        )
    if count < 0 or len(content) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"Snapshot of {len(content)} bytes cannot hold {count} producers")
    entries = []
    for pid, epoch, seq, offset, delta, timestamp, coordinator_epoch, txn in _ENTRY.iter_unpack(
        content[_HEADER.size :]
    ):
        batch = BatchMetadata(seq, offset, delta, timestamp) if offset >= 0 else None
        entries.append(ProducerStateEntry(pid, epoch, coordinator_epoch, timestamp, max(txn, -1), batch))
    return entries


def _first_offset(txn: TxnMetadata) -> int:
    return txn.first_offset.message_offset


class ProducerStateManager:
    """Producer states of one partition."""

    __slots__ = (
        "_dir",
        "_first_unreplicated",
        "_fs",
        "_snapshots",
        "config",
        "last_snapshot_offset",
        "map_end_offset",
        "ongoing_txns",
        "partition",
        "producers",
        "unreplicated_txns",
        "verification_states",
    )

    def __init__(
        self, partition: object, log_dir: str, fs: FileSystem, config: ProducerStateManagerConfig | None = None
    ) -> None:
        self.partition = partition
        self.config = config or ProducerStateManagerConfig()
        self._dir = log_dir
        self._fs = fs
        self.producers: dict[int, ProducerStateEntry] = {}
        self.verification_states: dict[int, VerificationState] = {}
        # There may be thousands, of which each append asks for the first. To reach the first key, a plain dict passes
        # over all that were deleted before it.
        self.ongoing_txns: OrderedDict[int, TxnMetadata] = OrderedDict()
        """The open transactions by their first offsets."""
        self.unreplicated_txns: OrderedDict[int, TxnMetadata] = OrderedDict()
        """The completed ones whose marker is not yet below the high watermark, by their first offsets."""
        self._first_unreplicated: int | None = None
        """The least of them."""
        self.map_end_offset = 0
        self.last_snapshot_offset = 0
        self._snapshots = sorted(log_files.snapshot_offsets(log_dir))

    # -- state -------------------------------------------------------------------------------------

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        return self.producers

    @property
    def is_empty(self) -> bool:
        return not self.producers and not self.unreplicated_txns

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        return self.producers.get(producer_id)

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        return ProducerAppendInfo(
            self.partition,
            producer_id,
            self.producers.get(producer_id),
            origin,
            self.verification_states.get(producer_id) if self.verification_states else None,
        )

    def update(self, infos: Iterable[ProducerAppendInfo]) -> None:
        """Apply what an append prepared. All its transactions begin above the open ones."""
        started: list[TxnMetadata] = []
        for info in infos:
            if info.producer_id == NO_PRODUCER_ID:
                raise ValueError(
                    f"Invalid producer id {info.producer_id} passed to update for partition {self.partition}"
                )
            self.producers[info.producer_id] = info.updated
            started += info.started_transactions
        if len(started) > 1:
            started.sort(key=_first_offset)
        for txn in started:
            self.ongoing_txns[txn.first_offset.message_offset] = txn

    def memory(self) -> ProducerMemory:
        return ProducerMemory(self.producers, self.ongoing_txns, self.unreplicated_txns, self.map_end_offset)

    def take_over(self, memory: ProducerMemory) -> None:
        """Replace the state by one computed elsewhere for the same log."""
        self.producers, self.ongoing_txns, self.unreplicated_txns, self.map_end_offset = memory
        self._first_unreplicated = min(self.unreplicated_txns, default=None)

    def load_entries(self, entries: Iterable[ProducerStateEntry]) -> None:
        """Add the entries of a snapshot to an empty state. Kafka: ProducerStateManager.loadProducerEntry."""
        firsts: list[tuple[int, int]] = []
        for entry in entries:
            self.producers[entry.producer_id] = entry
            if entry.current_txn_first_offset >= 0:
                firsts.append((entry.current_txn_first_offset, entry.producer_id))
        for first_offset, producer_id in sorted(firsts):
            self.ongoing_txns[first_offset] = TxnMetadata(producer_id, LogOffsetMetadata(first_offset))

    # -- transactions ------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> LogOffsetMetadata | None:
        """The start of the earliest unstable transaction; None without one."""
        ongoing = next(iter(self.ongoing_txns), None)
        unreplicated = self._first_unreplicated
        if unreplicated is not None and (ongoing is None or unreplicated < ongoing):
            return self.unreplicated_txns[unreplicated].first_offset
        return None if ongoing is None else self.ongoing_txns[ongoing].first_offset

    @property
    def oldest_transaction_last_timestamp(self) -> int:
        """When the producer of the oldest open transaction wrote last, in ms; -1 without one.

        Kafka: ProducerStateManager.oldestTxnLastTimestamp.
        """
        oldest = next(iter(self.ongoing_txns.values()), None)
        entry = None if oldest is None else self.producers.get(oldest.producer_id)
        return NO_TIMESTAMP if entry is None else entry.last_timestamp

    @property
    def first_undecided_offset(self) -> int | None:
        return next(iter(self.ongoing_txns), None)

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset after this transaction is complete, for its index entry."""
        others = (first for first, txn in self.ongoing_txns.items() if txn.producer_id != completed.producer_id)
        return next(others, completed.last_offset + 1)

    def aborted_by(self, infos: Iterable[ProducerAppendInfo], completed: Iterable[CompletedTxn]) -> list[AbortedTxn]:
        """The index entries of the transactions that an append aborts, to be written before the updates are applied."""
        started = sorted((txn for info in infos for txn in info.started_transactions), key=_first_offset)
        remaining = chain(self.ongoing_txns.values(), started)
        first = next(remaining, None)
        ended: set[int] = set()
        aborted = []
        for done in completed:
            ended.add(done.first_offset)
            if not done.is_aborted:
                continue
            while first is not None and _first_offset(first) in ended:
                first = next(remaining, None)
            stable = done.last_offset + 1
            # Nearly always `first` is of another producer. If not, the producer began it after this marker.
            for other in () if first is None else chain((first,), started):
                if other.producer_id != done.producer_id and _first_offset(other) not in ended:
                    stable = _first_offset(other)
                    break
            aborted.append(AbortedTxn(done.producer_id, done.first_offset, done.last_offset, stable))
        return aborted

    def complete_txn(self, completed: CompletedTxn) -> None:
        txn = self.ongoing_txns.pop(completed.first_offset, None)
        if txn is None:
            raise ValueError(f"Attempted to complete {completed} on partition {self.partition} which was not started")
        txn.last_offset = completed.last_offset
        self.unreplicated_txns[completed.first_offset] = txn
        if self._first_unreplicated is None or completed.first_offset < self._first_unreplicated:
            self._first_unreplicated = completed.first_offset

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Completed transactions whose marker lies below the high watermark become stable.

        Kafka: ProducerStateManager.onHighWatermarkUpdated.
        """
        if self.unreplicated_txns:
            self._remove_unreplicated_below(high_watermark)

    def _remove_unreplicated_below(self, offset: int) -> None:
        """Kafka: ProducerStateManager.removeUnreplicatedTransactions."""
        while self.unreplicated_txns:
            first, txn = next(iter(self.unreplicated_txns.items()))
            if txn.last_offset is None or txn.last_offset >= offset:
                break
            del self.unreplicated_txns[first]
        if self._first_unreplicated not in self.unreplicated_txns:
            self._first_unreplicated = min(self.unreplicated_txns, default=None)

    # -- expiry ------------------------------------------------------------------------------------

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        """Kafka: ProducerStateManager.isProducerExpired."""
        idle_ms = now_ms - entry.last_timestamp
        return entry.current_txn_first_offset < 0 and idle_ms >= self.config.producer_id_expiration_ms

    def remove_expired(self, now_ms: int) -> int:
        """Remove producers whose last timestamp is older than `producer_id_expiration_ms`. Returns their number.

        Kafka: ProducerStateManager.removeExpiredProducers.
        """
        expired = [pid for pid, entry in self.producers.items() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]
        limit_ms = self.config.producer_id_expiration_ms
        lingering = [pid for pid, state in self.verification_states.items() if now_ms - state.timestamp >= limit_ms]
        for producer_id in lingering:
            del self.verification_states[producer_id]
        return len(expired)

    # -- verification (KIP-890) --------------------------------------------------------------------

    def maybe_create_verification_state(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int
    ) -> VerificationState:
        state = self.verification_states.get(producer_id)
        if state is None:
            state = self.verification_states[producer_id] = VerificationState(now_ms, sequence, epoch)
        state.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return state

    def clear_verification_state(self, producer_id: int) -> None:
        self.verification_states.pop(producer_id, None)

    # -- snapshots ---------------------------------------------------------------------------------

    @property
    def snapshot_offsets(self) -> list[int]:
        return list(self._snapshots)

    @property
    def latest_snapshot_offset(self) -> int | None:
        return self._snapshots[-1] if self._snapshots else None

    def take_snapshot(self, *, sync: bool = False, is_required: bool = False) -> str | None:
        """Write a snapshot at `map_end_offset` if there is none yet. Returns its path, or None if none was written.

        On a full disk the log continues without the snapshot, which only saves a replay. `is_required` raises the error
        instead: after a clean stop, a log without any snapshot counts as one without producers.

        Raises: OSError.
        """
        if self.map_end_offset <= self.last_snapshot_offset:
            return None
        path = self._snapshot_path(self.map_end_offset)
        content = encode_snapshot(self.producers.values())
        try:
            if sync or not _holds(path, content):
                self._fs.write_file(path, content, sync=sync)
        except OSError as error:
            if not is_no_space(error):
                raise
            self._fs.unlink(path)
            if is_required:
                raise
            logger.warning(
                "Skipping the producer snapshot at %d of %s for lack of space: %s",
                self.map_end_offset,
                self.partition,
                error,
            )
            return None
        if self.map_end_offset not in self._snapshots:
            insort(self._snapshots, self.map_end_offset)
        self.last_snapshot_offset = self.map_end_offset
        return path

    def forget_snapshots_above(self, offset: int) -> None:
        """Drop these snapshots from the list; the files stay. A recovery replaces the files that differ, and then
        removes stray ones: freeing the block of a file may take milliseconds, and most snapshots do not change.
        """
        self._snapshots = [snapshot for snapshot in self._snapshots if snapshot <= offset]

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Keep the snapshots at segment bases and the newest one, if it lies beyond the last base (a clean close)."""
        # List the directory again: the recovery of a segment uses a state of its own and deletes invalid snapshots.
        self._snapshots = sorted(log_files.snapshot_offsets(self._dir))
        bases = set(segment_base_offsets)
        strays = [offset for offset in self._snapshots if offset not in bases]
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self.delete_snapshot(offset)

    def delete_snapshot(self, offset: int) -> None:
        """Kafka: ProducerStateManager.removeAndDeleteSnapshot."""
        if offset in self._snapshots:
            self._snapshots.remove(offset)
            self._fs.unlink(self._snapshot_path(offset))

    def mark_snapshot_for_deletion(self, offset: int) -> str | None:
        """Rename a snapshot to `.deleted`. Returns the path to unlink later; None without such a snapshot.

        Kafka: ProducerStateManager.removeAndMarkSnapshotForDeletion.
        """
        if offset not in self._snapshots:
            return None
        self._snapshots.remove(offset)
        path = self._snapshot_path(offset)
        deleted = path + log_files.DELETED_FILE_SUFFIX
        try:
            self._fs.rename(path, deleted)
        except FileNotFoundError:
            return None
        return deleted

    def rename_dir(self, log_dir: str) -> None:
        self._dir = log_dir

    def _snapshot_path(self, offset: int) -> str:
        return os.path.join(self._dir, log_files.snapshot_name(offset))

    # -- truncation --------------------------------------------------------------------------------

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Delete snapshots outside the log and, if the log end changed, load the newest remaining one.

        The caller replays the batches from there to the log end.
        """
        for offset in [o for o in self._snapshots if o > log_end_offset or o <= log_start_offset]:
            self.delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._clear()
        self._load_newest_snapshot(log_start_offset, now_ms)

    def at_snapshot(self, log_start_offset: int, offset: int, now_ms: int) -> ProducerStateManager:
        """A new manager with the state of the newest snapshot at or below `offset`, for `replay_beside`."""
        other = ProducerStateManager(self.partition, self._dir, self._fs, self.config)
        other._snapshots = [snapshot for snapshot in self._snapshots if log_start_offset < snapshot <= offset]
        other._load_newest_snapshot(log_start_offset, now_ms)
        return other

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._clear()
        for snapshot in self.snapshot_offsets:
            self.delete_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.map_end_offset = offset

    def _clear(self) -> None:
        self.producers.clear()
        self.ongoing_txns.clear()
        self.unreplicated_txns.clear()
        self._first_unreplicated = None

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        self._remove_unreplicated_below(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self.last_snapshot_offset = log_start_offset if latest is None else latest

    def _load_newest_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        """Kafka: ProducerStateManager.loadFromSnapshot."""
        while (offset := self.latest_snapshot_offset) is not None:
            try:
                with open(self._snapshot_path(offset), "rb") as file:
                    entries = decode_snapshot(file.read())
            except (CorruptSnapshotError, FileNotFoundError) as error:
                logger.warning("Deleting the damaged producer snapshot at %d of %s: %s", offset, self.partition, error)
                self.delete_snapshot(offset)
                continue
            self.load_entries(entry for entry in entries if not self._is_expired(entry, now_ms))
            self.last_snapshot_offset = self.map_end_offset = offset
            return
        self.last_snapshot_offset = self.map_end_offset = log_start_offset


def _holds(path: str, content: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        with open(path, "rb") as file:
            return file.read() == content
    except OSError:
        return False
