"""Producer state rebuilt from snapshots and batches equals the state after the appends."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.producers.producer_state_manager import ProducerStateManager, encode_snapshot
from tests.support.disks.logs import Disk, append, batch, crash_copy, marker

steps = st.lists(
    st.sampled_from(["plain", "idempotent", "begin", "commit", "abort", "roll", "hw"]), min_size=1, max_size=25
)


class Producers:
    """Two producers with their sequences, epochs and open transactions."""

    def __init__(self, log: UnifiedLog) -> None:
        self.log = log
        self.sequences = {1: 0, 2: 0}
        self.is_open = False

    def step(self, name: str) -> None:
        log = self.log
        match name:
            case "plain":
                append(log, b"x")
            case "idempotent":
                append(log, b"x", b"y", producer_id=1, producer_epoch=0, base_sequence=self.sequences[1])
                self.sequences[1] += 2
            case "begin":
                append(
                    log, b"t", producer_id=2, producer_epoch=0, base_sequence=self.sequences[2], is_transactional=True
                )
                self.sequences[2] += 1
            case "commit" | "abort":
                kind = ControlRecordType.COMMIT if name == "commit" else ControlRecordType.ABORT
                log.append_as_leader(marker(kind, producer_id=2), 0, origin=AppendOrigin.COORDINATOR)
            case "roll":
                if log.segments.active.size:
                    log.roll()
            case _:
                log.update_high_watermark(log.log_end_offset)


def state_of(producers: ProducerStateManager) -> tuple[bytes, int | None, int]:
    """The state that must survive: snapshots keep the last batch of each producer."""
    entries = sorted(producers.active_producers.values(), key=lambda entry: entry.producer_id)
    return encode_snapshot(entries), producers.first_undecided_offset, producers.map_end_offset


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(0, 30))
def test_rebuilt_state_equals_the_grown_one(names: list[str], recovery: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Disk(Path(directory) / "live").log()
        producers = Producers(log)
        for name in names:
            producers.step(name)
        expected = state_of(log.state.producers)
        aborted = [txn for segment in log.segments for txn in segment.txn_index]
        crash_copy(Path(directory) / "live", Path(directory) / "killed")
        log.discard()
        again = Disk(Path(directory) / "killed").log(recovery_point=min(recovery, log.log_end_offset))
        assert state_of(again.state.producers) == expected
        assert [txn for segment in again.segments for txn in segment.txn_index] == aborted
        again.discard()


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(0, 30))
def test_truncated_state_equals_that_of_a_log_that_never_went_further(names: list[str], cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Disk(Path(directory) / "long").log()
        short = Disk(Path(directory) / "short").log()
        for each in (log, short):
            producers = Producers(each)
            for name in names:
                if each is log or each.log_end_offset < cut:
                    producers.step(name)
        if short.log_end_offset < log.log_end_offset:
            log.truncate_to(short.log_end_offset)
        assert state_of(log.state.producers) == state_of(short.state.producers)
        for each in (log, short):
            each.discard()


def test_emptied_control_batch_changes_nothing(tmp_path: Path) -> None:
    """Compaction leaves an empty control batch after all data of the transaction is removed."""
    from odradek.protocol.records.builder import build_empty_batch
    from odradek.protocol.records.layout import CONTROL_MASK, TRANSACTIONAL_MASK

    log = Disk(tmp_path).log()
    log.append_as_follower(batch(b"a", epoch=0))
    empty = build_empty_batch(
        base_offset=1,
        last_offset=1,
        max_timestamp=5,
        attributes=CONTROL_MASK | TRANSACTIONAL_MASK,
        producer_id=9,
        producer_epoch=0,
        base_sequence=-1,
        partition_leader_epoch=0,
    )
    log.append_as_follower(memoryview(empty))
    assert log.log_end_offset == 2
    assert log.first_unstable_offset is None
