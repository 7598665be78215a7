"""A log as bare segment files, for tests of compaction: batches go in, a clean runs, its output is put in place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from odradek.protocol.records.batch import AnyBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.storage import log_files
from odradek.storage.cleaning.clean_job import CleanJob, CleanResult, LastRecord
from odradek.storage.cleaning.log_cleaning import LogCleaning
from odradek.storage.config.log_config import LogConfig
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.transaction_index import AbortedTxn, TransactionIndex
from tests.support.disks.logs import NOW, TP, Disk

KeyValue = tuple[bytes | None, bytes | None]


class BareLog:
    """Segments on disk and what a broker would know of their producers. The last segment is the active one."""

    def __init__(self, path: Path, overrides: dict[str, str] | None = None, *, base_offset: int = 0) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.disk = Disk(path)
        self.config = LogConfig.from_props({}, {"cleanup.policy": "compact"} | (overrides or {}))
        self.next_offset = base_offset
        self.bases: list[int] = []
        self.first_dirty_offset = base_offset
        self.last_records: dict[int, LastRecord] = {}
        self._sequences: dict[int, int] = {}
        self._transactions: dict[int, int] = {}
        self._segment: LogSegment | None = None
        self.slept_ms: list[int] = []
        self.roll()

    # -- writing -----------------------------------------------------------------------------------

    def roll(self) -> None:
        """Begin a new active segment."""
        if self._segment is not None:
            self._segment.become_inactive()
            self._segment.discard()
        self.bases.append(self.next_offset)
        self._segment = LogSegment.open(
            str(self.path), self.next_offset, self.config, self.disk.environment, create=True
        )

    def append(self, data: bytes | bytearray) -> AnyBatch:
        """Append one batch with the offsets it has."""
        (written,) = batches(memoryview(data))
        assert self._segment is not None
        self._segment.append([data], written.last_offset, written.max_timestamp, written.last_offset)
        self.next_offset = written.last_offset + 1
        return written

    def write(
        self,
        *pairs: KeyValue,
        producer_id: int = -1,
        epoch: int = 0,
        transactional: bool = False,
        compression: int = 0,
        timestamp: int = NOW,
        leader_epoch: int = 3,
        timestamp_type: int = 0,
    ) -> AnyBatch:
        """Append one batch of magic 2 with these keys and values; timestamps count up."""
        records = [SimpleRecord(timestamp + index, key, value) for index, (key, value) in enumerate(pairs)]
        sequence = self._sequences.get(producer_id, 0) if producer_id >= 0 else -1
        if transactional:
            self._transactions.setdefault(producer_id, self.next_offset)
        written = self.append(
            build_batch(
                records,
                base_offset=self.next_offset,
                partition_leader_epoch=leader_epoch,
                compression_type=compression,
                producer_id=producer_id,
                producer_epoch=epoch if producer_id >= 0 else -1,
                base_sequence=sequence,
                is_transactional=transactional,
                timestamp_type=timestamp_type,
                log_append_time=timestamp if timestamp_type else -1,
            )
        )
        if producer_id >= 0:
            self._sequences[producer_id] = sequence + len(pairs)
            self.last_records[producer_id] = LastRecord(written.last_offset, epoch)
        return written

    def write_legacy(
        self, *pairs: KeyValue, magic: int = 1, compression: int = 0, timestamp: int = NOW, timestamp_type: int = 0
    ) -> AnyBatch:
        """Append one message of an old format, or one wrapper around several."""
        assert compression or len(pairs) == 1
        records = [
            Record(self.next_offset + index, timestamp + index if magic else -1, key, value)
            for index, (key, value) in enumerate(pairs)
        ]
        data = build_messages(
            records,
            magic,
            base_offset=self.next_offset,
            compression_type=compression,
            timestamp_type=timestamp_type,
            log_append_time=timestamp if timestamp_type else -1,
        )
        return self.append(data)

    def end_transaction(
        self, producer_id: int, *, commit: bool, epoch: int = 0, timestamp: int = NOW, leader_epoch: int = 3
    ) -> AnyBatch:
        """Append a marker; an abort is noted in the transaction index."""
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = EndTransactionMarker(type=kind, coordinator_epoch=0)
        offset = self.next_offset
        first_offset = self._transactions.pop(producer_id, None)
        if first_offset is not None and not commit:
            stable = min(self._transactions.values(), default=offset + 1)
            assert self._segment is not None
            self._segment.txn_index.append(AbortedTxn(producer_id, first_offset, offset, stable))
        written = self.append(
            build_end_transaction_batch(
                marker,
                timestamp=timestamp,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_offset=offset,
                partition_leader_epoch=leader_epoch,
            )
        )
        known = self.last_records.get(producer_id)
        self.last_records[producer_id] = LastRecord(known.last_data_offset if known else None, epoch)
        return written

    @property
    def last_stable_offset(self) -> int:
        return min(self._transactions.values(), default=self.next_offset)

    # -- compaction --------------------------------------------------------------------------------

    def job(
        self,
        *,
        now_ms: int = NOW,
        map_slots: int = 1000,
        load_factor: float = 0.9,
        io_buffer_bytes: int = 1 << 19,
        bytes_per_second: float = 1e18,
        end: int | None = None,
    ) -> CleanJob:
        """The compaction of everything below the active segment and the last stable offset."""
        stable = self.last_stable_offset if end is None else end
        uncleanable = max(base for base in self.bases if base <= stable)
        return CleanJob(
            directory=str(self.path),
            topic_partition=TP,
            config=self.config,
            base_offsets=tuple(base for base in self.bases if base < uncleanable),
            first_dirty_offset=self.first_dirty_offset,
            first_uncleanable_offset=uncleanable,
            now_ms=now_ms,
            last_records=dict(self.last_records),
            offset_map_bytes=24 * map_slots,
            offset_map_load_factor=load_factor,
            io_buffer_bytes=io_buffer_bytes,
            io_max_bytes_per_second=bytes_per_second,
            max_message_bytes=1 << 20,
        )

    def run(self, job: CleanJob) -> CleanResult:
        """Compact, on the test's clock, and leave the output beside the log."""
        return LogCleaning(job, self.disk.environment, self._sleep).run()

    def _sleep(self, ms: int) -> None:
        self.slept_ms.append(ms)
        self.disk.advance(ms)

    def clean(self, job: CleanJob | None = None, **options: int | float) -> CleanResult:
        """Compact and put the output in place."""
        result = self.run(job or self.job(**options))  # type: ignore[arg-type]
        for group in result.groups:
            self._swap(group.source_base_offsets, group.base_offset)
        assert not list(self.path.glob("*.cleaned"))
        self.first_dirty_offset = result.next_dirty_offset
        return result

    def _swap(self, sources: Sequence[int], base_offset: int) -> None:
        for source in sources:
            self.bases.remove(source)
            for suffix in log_files.SEGMENT_FILE_SUFFIXES:
                (self.path / log_files.offset_name(source, suffix)).unlink(missing_ok=True)
        self.bases = sorted([*self.bases, base_offset])
        for path in self.path.glob(f"{base_offset:020d}.*.cleaned"):
            os.rename(path, path.with_suffix(""))

    # -- reading -----------------------------------------------------------------------------------

    def data(self, base_offset: int) -> bytes:
        """The bytes of a segment."""
        return (self.path / log_files.offset_name(base_offset, ".log")).read_bytes()

    def batches(self) -> Iterator[AnyBatch]:
        """All batches of the log."""
        for base in self.bases:
            yield from batches(memoryview(self.data(base)))

    def records(self) -> list[Record]:
        """All records but markers."""
        return [record for batch in self.batches() if not batch.is_control for record in batch.records()]

    def keyed(self) -> dict[int, KeyValue]:
        """Key and value by offset."""
        return {record.offset: (record.key, record.value) for record in self.records()}

    def aborted(self) -> list[AbortedTxn]:
        """All entries of the transaction indexes."""
        environment = self.disk.environment
        return [
            entry
            for base in self.bases
            for entry in TransactionIndex(
                str(self.path / log_files.offset_name(base, ".txnindex")),
                base,
                environment.fs,
                environment.open_files,
            )
        ]
