"""The records that a reader of committed data gets, compared with a list of the written ones.

The log has many segments, the batches of several producers alternate, the high watermark and the log start move, and
processes die at any time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import Disk, append, crash_copy, marker, read_bytes

PRODUCERS = (1, 2, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "commit", "abort"]), st.sampled_from(PRODUCERS)),
        st.tuples(st.sampled_from(["plain", "roll", "restart"]), st.just(0)),
        st.tuples(st.sampled_from(["replicate", "delete"]), st.integers(0, 40)),
    ),
    min_size=1,
    max_size=40,
)


@dataclass
class Transaction:
    """The records of a transaction, by offset."""

    values: dict[int, bytes]
    end_offset: int | None = None
    is_committed: bool = False


@dataclass
class Model:
    """All written records."""

    transactions: list[Transaction] = field(default_factory=list)
    open: dict[int, Transaction] = field(default_factory=dict)
    plain: dict[int, bytes] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PRODUCERS, 0))
    epochs: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PRODUCERS, 0))

    def bump_epoch(self, producer_id: int) -> None:
        """The reaction of a client to a refused sequence (KIP-360)."""
        self.epochs[producer_id] += 1
        self.sequences[producer_id] = 0

    def last_stable_offset(self, high_watermark: int, log_start: int) -> int:
        """The start of the first transaction without a marker below the high watermark."""
        unstable = [
            min(txn.values) for txn in self.transactions if txn.end_offset is None or txn.end_offset >= high_watermark
        ]
        return min([high_watermark, *(max(log_start, first) for first in unstable)])

    def committed(self, start: int, end: int) -> dict[int, bytes]:
        found = dict(self.plain)
        for txn in self.transactions:
            if txn.is_committed:
                found |= txn.values
        return {offset: found[offset] for offset in sorted(found) if start <= offset < end}


def step(log: UnifiedLog, model: Model, name: str, value: int) -> None:
    match name:
        case "write":
            data = b"%d" % log.log_end_offset
            identity = {
                "producer_id": value,
                "producer_epoch": model.epochs[value],
                "base_sequence": model.sequences[value],
            }
            model.sequences[value] += 1
            offset = append(log, data, is_transactional=True, **identity)
            if value not in model.open:
                model.open[value] = Transaction({})
                model.transactions.append(model.open[value])
            model.open[value].values[offset] = data
        case "commit" | "abort":
            kind = ControlRecordType.COMMIT if name == "commit" else ControlRecordType.ABORT
            control = marker(kind, producer_id=value, producer_epoch=model.epochs[value])
            end = log.append_as_leader(control, 0, origin=AppendOrigin.COORDINATOR)
            if (txn := model.open.pop(value, None)) is not None:
                txn.end_offset, txn.is_committed = end.first_offset, name == "commit"
        case "plain":
            data = b"plain %d" % log.log_end_offset
            model.plain[append(log, data)] = data
        case "roll":
            if log.segments.active.size:
                log.roll()
        case "replicate":
            log.update_high_watermark(max(log.high_watermark, min(value, log.log_end_offset)))
        case "delete":
            if log.log_start_offset < value <= log.high_watermark:
                log.maybe_increment_log_start_offset(value, "test")
                log.delete_old_segments()


def consume(log: UnifiedLog, start: int) -> Iterator[tuple[int, bytes | None]]:
    """As clients do: skip a producer's records from the start of its aborted transaction to the marker."""
    offset = start
    while offset < log.last_stable_offset:
        found = log.read(offset, 150, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        assert found.aborted_transactions is not None
        waiting = sorted(found.aborted_transactions, key=lambda txn: txn.first_offset)
        aborting: set[int] = set()
        for batch in batches(memoryview(read_bytes(found))):
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            offset = batch.next_offset
            if batch.is_control:
                if control_record_type(batch) is ControlRecordType.ABORT:
                    aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                yield from ((record.offset, record.value) for record in batch.records() if record.offset >= start)


@settings(max_examples=60, deadline=None)
@given(steps)
@example([("write", 1), ("roll", 0), ("commit", 1), ("replicate", 1), ("delete", 1), ("restart", 0), ("write", 1)])
def test_all_that_is_committed_and_nothing_else(taken: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = Model()
        path = Path(directory) / "0"
        log, has_restarted = Disk(path).log(), False
        for number, (name, value) in enumerate(taken, 1):
            if name == "restart":
                high_watermark, start = log.high_watermark, log.log_start_offset
                path = crash_copy(path, Path(directory) / str(number))
                log.discard()
                log = Disk(path).log(log_start_offset=start)
                log.update_high_watermark(high_watermark)
                has_restarted = True  # a snapshot has no completed transactions
                for producer_id in set(PRODUCERS) - {
                    known for known, state in log.state.producers.producers.items() if state.batches
                }:
                    # Its batches were deleted, and so are snapshots at or below the log start offset.
                    model.bump_epoch(producer_id)
            else:
                step(log, model, name, value)
            stable = model.last_stable_offset(log.high_watermark, log.log_start_offset)
            assert log.last_stable_offset == stable or has_restarted
            for start in {log.log_start_offset, stable // 2, stable}:
                if start >= log.log_start_offset:
                    assert dict(consume(log, start)) == model.committed(start, log.last_stable_offset)
        log.discard()
