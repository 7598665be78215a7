"""Random logs with random compactions, and a simple model of them: lists, and loops over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st

from odradek.protocol.records.batch import AnyBatch, RecordBatch
from odradek.storage.cleaning.clean_job import CleanJob
from tests.support.compaction.compaction import BareLog, KeyValue
from tests.support.disks.logs import NOW

DELETE_RETENTION_MS = 1000
TRANSACTIONAL = (10, 11, 12)
IDEMPOTENT = (20, 21)
Step: TypeAlias = tuple[str, tuple[object, ...]]

_keys = st.sampled_from([b"a", b"b", b"c", b"dd", b"e" * 70, b"", b"f", b"g"])
_values = st.none() | st.binary(max_size=12) | st.just(b"v" * 300)
_pairs = st.lists(st.tuples(st.one_of(_keys, _keys, _keys, st.none()), _values), min_size=1, max_size=6)
_codecs = st.sampled_from([0, 0, 1, 2, 3, 4])
_write = st.tuples(
    st.just("write"),
    st.tuples(_pairs, _codecs, st.sampled_from([-1, -1, *TRANSACTIONAL, *IDEMPOTENT]), st.integers(0, 1)),
)
_end = st.tuples(st.just("end"), st.tuples(st.sampled_from(TRANSACTIONAL), st.booleans()))
_roll = st.tuples(st.just("roll"), st.just(()))
_clean = st.tuples(st.just("clean"), st.tuples(st.sampled_from([0, 500, 1500]), st.sampled_from([2, 3, 5, 1000])))
_forget = st.tuples(st.just("forget"), st.tuples(st.sampled_from([*TRANSACTIONAL, *IDEMPOTENT])))
_step = st.one_of(_write, _write, _write, _end, _roll, _clean, _clean, _forget)
steps: st.SearchStrategy[list[Step]] = st.lists(_step, min_size=4, max_size=30)


@dataclass
class ModelBatch:
    """A batch of the model."""

    base_offset: int
    last_offset: int
    records: list[tuple[int, KeyValue]]
    producer_id: int
    transactional: bool
    control: bool = False
    aborted: bool = False
    committed_by: int | None = None
    horizon_ms: int | None = None


@dataclass
class Model:
    """All batches of a log, in order."""

    batches: list[ModelBatch] = field(default_factory=list)

    def write(self, written: AnyBatch, pairs: list[KeyValue], transactional: bool) -> None:
        offsets = enumerate(pairs, written.base_offset)
        self.batches.append(
            ModelBatch(written.base_offset, written.last_offset, list(offsets), written.producer_id, transactional)
        )

    def end(self, written: AnyBatch, commit: bool) -> None:
        for batch in self.batches:
            if batch.producer_id == written.producer_id and batch.transactional and batch.committed_by is None:
                batch.committed_by, batch.aborted = written.last_offset, not commit
        record = (written.last_offset, (b"", b""))
        self.batches.append(
            ModelBatch(written.base_offset, written.last_offset, [record], written.producer_id, True, control=True)
        )
        self.batches[-1].committed_by = written.last_offset

    def clean(self, job: CleanJob, end_offset: int, rewritten_below: int) -> None:
        """A compaction whose map covers [first dirty, end offset)."""
        latest: dict[bytes | None, int] = {}
        for batch in self.batches:
            for offset, (key, _) in batch.records:
                is_data = key is not None and not batch.control and not batch.aborted
                if is_data and job.first_dirty_offset <= offset < end_offset:
                    latest[key] = offset
        before = list(self.batches)
        for batch in before:
            if batch.base_offset >= rewritten_below:
                continue
            if batch.control:
                self._clean_marker(batch, before, job)
            else:
                self._clean_data(batch, latest, end_offset, job)
            is_last = job.last_records.get(batch.producer_id)
            if is_last is None:
                must_stay = False
            elif is_last.last_data_offset is not None:
                must_stay = batch.last_offset == is_last.last_data_offset
            else:
                must_stay = batch.control
            if not batch.records and not must_stay:
                self.batches.remove(batch)
            elif not batch.records:
                batch.horizon_ms = None

    def _clean_marker(self, marker: ModelBatch, before: list[ModelBatch], job: CleanJob) -> None:
        has_data = any(b.committed_by == marker.last_offset and not b.control for b in before)
        if has_data or not marker.records:
            return
        if marker.horizon_ms is None:
            marker.horizon_ms = job.now_ms + DELETE_RETENTION_MS
        elif marker.horizon_ms <= job.now_ms:
            marker.records = []

    def _clean_data(self, batch: ModelBatch, latest: dict[bytes | None, int], end_offset: int, job: CleanJob) -> None:
        expired = batch.horizon_ms is not None and batch.horizon_ms <= job.now_ms
        kept = []
        for offset, (key, value) in batch.records:
            if batch.aborted:
                continue
            is_latest = key is not None and latest.get(key, -1) <= offset and not (value is None and expired)
            if offset >= end_offset or is_latest:
                kept.append((offset, (key, value)))
        batch.records = kept
        if batch.horizon_ms is None and any(value is None for _, (_, value) in kept):
            batch.horizon_ms = job.now_ms + DELETE_RETENTION_MS


def run_against_model(script: list[Step], directory: Path) -> None:
    """Play a script on files and on the model, and compare after each compaction."""
    log = BareLog(directory, {"delete.retention.ms": str(DELETE_RETENTION_MS), "segment.bytes": "2500"})
    model = Model()
    written_at: dict[int, AnyBatch] = {}
    now_ms = NOW
    for name, arguments in [*script, ("roll", ()), ("clean", (5000, 1000)), ("clean", (5000, 1000))]:
        match name, arguments:
            case "write", (list(pairs), int(codec), int(producer_id), int(timestamp_type)):
                transactional = producer_id in TRANSACTIONAL
                written = log.write(
                    *pairs,
                    compression=codec,
                    producer_id=producer_id,
                    transactional=transactional,
                    timestamp=now_ms,
                    timestamp_type=timestamp_type,
                )
                model.write(written, pairs, transactional)
                written_at[written.base_offset] = written
            case "end", (int(producer_id), bool(commit)):
                written = log.end_transaction(producer_id, commit=commit, timestamp=now_ms)
                model.end(written, commit)
                written_at[written.base_offset] = written
            case "roll", ():
                if log.bases[-1] != log.next_offset:
                    log.roll()
            case "forget", (int(producer_id),):
                log.last_records.pop(producer_id, None)
            case "clean", (int(passed_ms), int(map_slots)):
                now_ms += passed_ms
                _clean(log, model, log.job(now_ms=now_ms, map_slots=map_slots))
                _compare(log, model, written_at)


def _clean(log: BareLog, model: Model, job: CleanJob) -> None:
    if job.first_dirty_offset >= job.first_uncleanable_offset:
        return
    bases = [*job.base_offsets, job.first_uncleanable_offset]
    max_keys = int(job.offset_map_bytes // 24 * job.offset_map_load_factor)
    result = log.clean(job)
    end = result.next_dirty_offset
    assert job.first_dirty_offset < end <= job.first_uncleanable_offset
    rewritten_below = min(base for base in bases if base >= end)
    keys = {
        key
        for batch in model.batches
        if not batch.aborted and not batch.control
        for offset, (key, _) in batch.records
        if key is not None and job.first_dirty_offset <= offset < end
    }
    assert len(keys) <= max_keys
    if end < job.first_uncleanable_offset:
        assert len(keys) == max_keys, "the map was not full, but the clean has stopped"
    model.clean(job, end, rewritten_below)


def _compare(log: BareLog, model: Model, written_at: dict[int, AnyBatch]) -> None:
    found = list(log.batches())
    assert [b.base_offset for b in found] == [b.base_offset for b in model.batches]
    for batch, expected in zip(found, model.batches, strict=True):
        assert isinstance(batch, RecordBatch)
        batch.ensure_valid()
        original = written_at[batch.base_offset]
        assert isinstance(original, RecordBatch)
        assert batch.last_offset == expected.last_offset
        assert batch.delete_horizon_ms == expected.horizon_ms
        for name in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch", "timestamp_type",
                     "is_transactional", "is_control"):  # fmt: skip
            assert getattr(batch, name) == getattr(original, name), name
        records = list(batch.records())
        if not batch.is_control:
            assert [(r.offset, (r.key, r.value)) for r in records] == expected.records
        originals = {record.offset: record for record in original.records()}
        assert records == [originals[record.offset] for record in records]
        if records:
            assert batch.compression_type == original.compression_type
            assert batch.max_timestamp == max(record.timestamp for record in records)
        if len(records) == original.record_count and expected.horizon_ms is None:
            assert bytes(batch.buffer) == bytes(original.buffer)
    data_of_aborted = {b.committed_by for b in model.batches if b.aborted}
    markers = {b.last_offset for b in model.batches if b.control}
    entries = {entry.last_offset for entry in log.aborted()}
    assert data_of_aborted <= entries <= markers
