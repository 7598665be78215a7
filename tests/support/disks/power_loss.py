"""Logs on a disk that loses its power at any change of a file, and the checks after the next start.

`PowerLoss(seed, path).run()` does random things to a few logs (appends with and without idempotence, flushes, rolls,
retention, truncation, checkpoints, creation and deletion of topics, clean restarts), cuts the power at some change of a
file or at the end, starts again on what the disk has kept, and checks it against a model that remembers everything:

* what was flushed (`when_flushed` has called back, or the recovery point has passed it) is there as it was written, and
  so is what was acknowledged where `flush.messages` is 1, the first time or again;
* what is served is intact: every CRC, nothing but what was once appended at that offset, found by every index; no gap
  in what was flushed (above it there may be one, as in Kafka, where a segment has lost a part of its batches and the
  next one has not), and none where a segment has lost all it had;
* a log that was created durably exists, and one whose deletion was durable does not;
* producers and epochs fit the records; appends go on; and after a clean stop all of it is there again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from odradek.protocol.records.batch import batches
from odradek.protocol.records.record import Record
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import LogAppendInfo
from odradek.storage.disk.environment import Environment
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.disks.logs import NOW, DeferredIoPool, Disk, append, batch, read_all, read_bytes
from tests.support.disks.simulated_disk import PowerCutError, SimulatedDisk

STEPS: Final = 60
CHANGES_MAX: Final = 500
"""More changes than most runs make: the power is cut before one of them, or after the last."""

TOPICS: Final = {
    "plain": {"segment.bytes": "500", "index.interval.bytes": "120", "file.delete.delay.ms": "50"},
    "flushed": {"flush.messages": "1", "segment.bytes": "700", "index.interval.bytes": "100"},
    "short": {"retention.bytes": "900", "segment.bytes": "300", "file.delete.delay.ms": "20"},
}
PARTITIONS: Final = [TopicPartition(topic, 0) for topic in TOPICS]
PRODUCERS: Final = (-1, -1, 1, 2)
BROKEN_CONNECTIONS: Final = 0.4
"""The share of idempotent appends that are sent again."""
BEGUN_ANEW: Final = 0.3
"""The share of truncations to an empty log, as when the leader's log begins behind the end."""


def close_descriptors_below(path: Path) -> None:
    """Close what a process without power has left open: files that were about to be written, synced or removed."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the descriptor of the listing itself
            if os.readlink(f"/proc/self/fd/{name}").startswith(f"{path}/"):
                os.close(int(name))


@dataclass(slots=True)
class Model:
    """What one incarnation of a log should hold."""

    tp: TopicPartition
    topic_id: bytes
    values: list[bytes] = field(default_factory=list)
    """By offset, as they are now."""
    ever: dict[int, set[bytes]] = field(default_factory=dict)
    """By offset, with those that were truncated away."""
    bases: list[int] = field(default_factory=list)
    """Where batches begin: a batch is cut off as a whole, whatever the offset, so that only these leave no gap."""
    start: int = 0
    flushed: int = 0
    """Everything below has been reported as flushed."""
    truncations: int = 0
    is_truncating: bool = False
    """A truncation waits until it is allowed, and the next append until it is durable, as in a follower."""
    sequences: dict[int, int] = field(default_factory=dict)
    created: bool = False
    """Its creation is on the disk. Before that no request names the log, and so nothing is appended to it."""
    epoch: int = 0

    def begin_anew(self, offset: int) -> None:
        """The log is empty, and its next record will be the one at `offset`."""
        self.values += [b""] * (offset - len(self.values))
        self.bases = []
        self.truncations += 1
        self.start = self.flushed = offset
        self.epoch += 1
        self.sequences = {}

    def truncate(self, offset: int) -> None:
        del self.values[offset:]
        self.bases = [base for base in self.bases if base < offset]
        self.truncations += 1
        self.flushed = min(self.flushed, offset)
        self.start = min(self.start, offset)
        self.epoch += 1  # a log is cut because another leader began an epoch
        self.sequences = {
            pid: max((_sequence(value, pid) for value in self.values), default=-1) for pid in self.sequences
        }


class PowerLoss:
    """A run: operations, a cut of the power, a start, and the checks."""

    def __init__(self, seed: int, path: Path) -> None:
        self.rng = Random(seed)
        self.other_rng = Random(seed + 1)
        self.path = path
        self.clock = ManualClock(NOW)
        cut_at = self.rng.randrange(1, CHANGES_MAX)
        self.fs = SimulatedDisk(path / "live", cut_at)
        self.pool = DeferredIoPool()
        self.models: dict[TopicPartition, Model] = {}
        self.deleted: list[Model] = []
        """Deletions under way: their files may come back."""
        self.gone: set[bytes] = set()
        """Topic ids of deletions that are durable."""
        self.numbers = itertools.count(1)
        self.manager = self._manager()

    def run(self) -> None:
        steps: list[tuple[int, Callable[[], None]]] = [
            (30, self._append),
            (20, self._run_pool),
            (8, self._flush),
            (4, self._roll),
            (3, self._truncate),
            (3, self._delete_records),
            (4, self._retention),
            (5, self._checkpoint),
            (4, self._let_time_pass),
            (2, self._delete),
            (2, self._restart),
        ]
        weights, actions = zip(*steps, strict=True)
        try:
            self._start()
            for tp in PARTITIONS:
                self._create(tp)
            self._run_pool()
            for _ in range(STEPS):
                self.rng.choices(actions, weights)[0]()
        except PowerCutError:
            pass
        self._note_recovery_points()
        self.fs.cut_power(self.rng, self.path / "after")
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()
        for log in self.manager.all_logs():
            log.discard()
        try:
            self._check()
        finally:
            close_descriptors_below(self.path)

    # -- what is done ------------------------------------------------------------------------------

    def _manager(self) -> LogManager:
        environment = Environment(
            clock=self.clock,
            timer=SystemTimer(self.clock),
            fs=self.fs,
            io_pool=self.pool,
            open_files=OpenFiles(),
            new_uuid_hex=lambda: f"{next(self.numbers):032x}",
        )
        return LogManager([str(self.fs.root / "logs")], {}, environment)

    def _start(self) -> None:
        self.manager.startup(TOPICS)
        self.pool.run_all()
        for log in self.manager.all_logs():
            log.update_high_watermark(log.log_end_offset)

    def _some_log(self) -> tuple[UnifiedLog, Model]:
        model = self.rng.choice(list(self.models.values()))
        log = self.manager.get_log(model.tp)
        assert log is not None
        return log, model

    def _create(self, tp: TopicPartition) -> None:
        topic_id = next(self.numbers).to_bytes(16, "big")
        model = self.models[tp] = Model(tp, topic_id)
        self.manager.get_or_create_log(tp, topic_id, is_new=True)

        def durable(error: OSError | None) -> None:
            assert error is None
            model.created = True

        self.manager.when_durable(durable)

    def _append(self) -> None:
        log, model = self._some_log()
        if model.is_truncating or not model.created:
            return
        producer_id = self.rng.choice(PRODUCERS)
        count = self.rng.randint(1, 3)
        values = []
        sequence = model.sequences.get(producer_id, -1) + 1
        for number in range(count):
            name = f"{model.topic_id.hex()[-4:]} {model.epoch} {producer_id}/{sequence + number}"
            values.append(name.encode() + b"." * self.rng.randint(0, 60))
        producer = {} if producer_id < 0 else {"producer_epoch": 0, "base_sequence": sequence}
        offset = len(model.values)
        # Noted before the write: the power may go after it, and then the records may be there.
        for at, value in enumerate(values, offset):
            model.ever.setdefault(at, set()).add(value)
        timestamp = NOW + 10 * offset
        records = batch(*values, timestamp=timestamp, producer_id=producer_id, **producer)
        info = log.append_as_leader(records, model.epoch)
        model.values += values
        model.bases.append(offset)
        if producer_id >= 0:
            model.sequences[producer_id] = sequence + count - 1
        log.update_high_watermark(log.log_end_offset)
        if producer_id >= 0 and self.other_rng.random() < BROKEN_CONNECTIONS:
            # There was no answer, so the producer sends it again.
            first_offset = info.first_offset
            info = log.append_as_leader(records, model.epoch)
            assert (info.duplicate, info.first_offset) == (True, first_offset)
        self._acknowledge(log, model, info)

    def _acknowledge(self, log: UnifiedLog, model: Model, info: LogAppendInfo) -> None:
        """Answer the producer as the broker does: with `flush.messages=1` the records are on the disk then."""
        if info.flush_required:
            self._promise(log, model)
        elif log.config.flush_messages == 1:
            model.flushed = max(model.flushed, info.last_offset + 1)

    def _flush(self) -> None:
        self._promise(*self._some_log())

    def _promise(self, log: UnifiedLog, model: Model) -> None:
        end, truncations = log.log_end_offset, model.truncations

        def flushed(error: OSError | None) -> None:
            if error is None and truncations == model.truncations:
                model.flushed = max(model.flushed, end)

        log.when_flushed(end, flushed)

    def _note_recovery_points(self) -> None:
        for model in self.models.values():
            log = self.manager.get_log(model.tp)
            if log is not None:
                model.flushed = max(model.flushed, min(log.recovery_point, len(model.values)))

    def _run_pool(self) -> None:
        for _ in range(min(len(self.pool.pending), self.rng.choice((1, 2, 1000)))):
            self.pool.run_one()

    def _roll(self) -> None:
        log, model = self._some_log()
        if log.segments.active.size and not model.is_truncating:
            log.roll()

    def _truncate(self) -> None:
        log, model = self._some_log()
        end = len(model.values)
        offset = self.rng.choice([base for base in [*model.bases[-6:], end] if base >= log.log_start_offset])
        if offset >= end or model.is_truncating:
            return
        model.is_truncating = True
        if self.other_rng.random() < BEGUN_ANEW:
            offset = end + self.other_rng.randint(0, 3)
            self.manager.when_cuttable(
                log, log.segments.first.base_offset, lambda error: self._begin_anew(error, model, offset)
            )
        else:
            self.manager.when_cuttable(log, offset, lambda error: self._cut(error, model, offset))

    def _cut(self, error: OSError | None, model: Model, offset: int) -> None:
        if error is None:
            model.truncate(offset)
            self.manager.truncate_to({model.tp: offset})
            self._append_when_durable(model)

    def _begin_anew(self, error: OSError | None, model: Model, offset: int) -> None:
        if error is None:
            model.begin_anew(offset)
            self.manager.truncate_fully_and_start_at(model.tp, offset)
            self._append_when_durable(model)

    def _append_when_durable(self, model: Model) -> None:
        truncations = model.truncations

        def durable(error: OSError | None) -> None:
            assert error is None
            if truncations == model.truncations:
                model.is_truncating = False

        self.manager.when_durable(durable)

    def _delete_records(self) -> None:
        log, model = self._some_log()
        model.start = self.rng.randint(model.start, len(model.values))
        log.maybe_increment_log_start_offset(model.start, "test")

    def _retention(self) -> None:
        for model in self.models.values():
            model.start = len(model.values)  # during the operation any part of it may be lost
            log = self.manager.get_log(model.tp)
            assert log is not None
            log.delete_old_segments()
            model.start = log.log_start_offset

    def _checkpoint(self) -> None:
        self.manager.checkpoint_recovery_points()
        self.manager.checkpoint_log_start_offsets()
        self.manager.checkpoint_high_watermarks()

    def _let_time_pass(self) -> None:
        self.clock.advance(self.rng.choice((1, 30, 100)))
        self.manager.environment.timer.advance()

    def _delete(self) -> None:
        tp = self.rng.choice(PARTITIONS)
        model = self.models.pop(tp)
        self.deleted.append(model)
        self.manager.async_delete(tp)

        def durable(error: OSError | None) -> None:
            if error is None:
                self.gone.add(model.topic_id)

        self.manager.when_durable(durable)
        self._create(tp)

    def _restart(self) -> None:
        """Everything that was acknowledged is on the disk after a clean stop."""
        self._note_recovery_points()
        self.manager.shutdown()
        self.pool.run_all()
        for model in self.models.values():
            model.flushed = len(model.values)
            model.created = True
            model.is_truncating = False
        self.gone |= {model.topic_id for model in self.deleted}
        self.manager = self._manager()
        self._start()

    # -- what must be true -------------------------------------------------------------------------

    def _check(self) -> None:
        by_id = {model.topic_id: model for model in [*self.models.values(), *self.deleted]}
        disk = Disk(self.path / "after" / "logs")
        for clean in (False, True):
            manager = LogManager([str(disk.path)], {}, disk.environment)
            manager.startup(TOPICS)
            for log in manager.all_logs():
                self._check_log(log, by_id)
            for model in self.models.values():
                log = manager.get_log(model.tp)
                is_own = log is not None and log.topic_id in (None, model.topic_id)
                assert is_own or not model.created, f"{model.tp} was created, and is not there"
                if not clean and log is not None:
                    self._go_on(log, by_id)
            manager.shutdown()

    def _check_log(self, log: UnifiedLog, by_id: dict[bytes, Model]) -> None:
        records = _served(log)
        topic_ids = _topic_ids(log, records)
        assert not topic_ids & self.gone, f"a deleted log is back in {log.dir}"
        assert len(topic_ids) <= 1, f"{log.dir} holds records of several logs"
        for topic_id in topic_ids:
            model = by_id[topic_id]
            for record in records:
                assert record.value in model.ever.get(record.offset, ()), f"{record} was never appended to {log}"
            if model in self.models.values():
                found = {record.offset: record.value for record in records}
                for offset in range(model.start, model.flushed):
                    assert found.get(offset) == model.values[offset], f"{offset} of {log} was flushed and is lost"
        _check_state(log, records)
        _check_lookups(log, records, self.rng)

    def _go_on(self, log: UnifiedLog, by_id: dict[bytes, Model]) -> None:
        records = _served(log)
        known = _topic_ids(log, records)
        model = by_id[known.pop()] if known else self.models[log.topic_partition]
        value = f"{model.topic_id.hex()[-4:]} and life goes on".encode()
        offset = append(log, value, epoch=99, timestamp=NOW + 10**6)
        model.ever.setdefault(offset, set()).add(value)
        model.values[offset:] = [value]
        assert [record.offset for record in _served(log)] == [*(record.offset for record in records), offset]


def _topic_ids(log: UnifiedLog, records: list[Record]) -> set[bytes]:
    """Which incarnations the directory and the records in it belong to."""
    topic_ids = {bytes.fromhex("00" * 14 + (record.value or b"")[:4].decode()) for record in records}
    return topic_ids if log.topic_id is None else topic_ids | {log.topic_id}


def _served(log: UnifiedLog) -> list[Record]:
    """Every record, each batch of it intact and behind the one before."""
    offset = log.log_start_offset
    while data := read_bytes(log.read(offset, 1 << 20, FetchIsolation.LOG_END, True)):
        for each in batches(memoryview(data)):
            assert each.is_valid(), f"{log} serves a batch that is not"
            assert offset <= each.last_offset < log.log_end_offset
            offset = each.next_offset
    return read_all(log)


def _check_state(log: UnifiedLog, records: list[Record]) -> None:
    """Producers and epochs know what the records say; where some are missing, a snapshot may know more."""
    assert all(segment.size for segment in list(log.segments)[:-1]), f"{log} has an empty segment inside"
    offsets = [record.offset for record in records]
    has_gap = offsets != list(range(log.log_start_offset, log.log_end_offset))
    for producer_id in () if has_gap else set(PRODUCERS) - {-1}:
        last = max((_sequence(record.value or b"", producer_id) for record in records), default=-1)
        entry = log.active_producers().get(producer_id)
        if last >= 0:
            assert entry is not None, f"{log} has forgotten producer {producer_id}"
            assert entry.last_seq == last, f"{log}: producer {producer_id} is at {entry.last_seq} and not {last}"
    starts = [entry.start_offset for entry in log.state.leader_epochs.entries]
    assert starts == sorted(starts)
    assert not starts or starts[-1] <= log.log_end_offset


def _check_lookups(log: UnifiedLog, records: list[Record], rng: Random) -> None:
    """The indexes find what a scan finds.

    As in Kafka, a segment without time index entries counts with the time of its file, and hides those behind it: one
    below the log start, of whose files some were removed already.
    """
    bases = log.segments.base_offsets
    hidden = len(bases) > 1 and bases[1] <= log.log_start_offset
    for record in rng.sample(records, min(3, len(records))):
        assert read_all(log, record.offset) == [each for each in records if each.offset >= record.offset]
        if hidden:
            continue
        found = log.fetch_offset_by_timestamp(record.timestamp)
        first = next(each for each in records if each.timestamp >= record.timestamp)
        assert found is not None, f"{log} does not find {first.offset}"
        assert found.offset == first.offset, f"{log} finds {found} instead of {first.offset}"


def _sequence(value: bytes, producer_id: int) -> int:
    """The sequence number in a value that the producer has written; -1 for those of others."""
    words = value.rstrip(b".").split()
    if len(words) != 3:
        return -1
    owner, _, sequence = words[2].partition(b"/")
    return int(sequence) if int(owner) == producer_id else -1
