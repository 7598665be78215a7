"""Producer states of a log: transactions, expiry and snapshots."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.producers.producer_state import (
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateEntry,
)
from odradek.storage.producers.producer_state_manager import (
    CorruptSnapshotError,
    ProducerStateManager,
    decode_snapshot,
    encode_snapshot,
)
from tests.support.disks.faulty_disk import NEEDS_ROOM, FaultyFileSystem, disk_full, io_error

DAY = 86_400_000


@pytest.fixture
def producers(tmp_path: Path) -> ProducerStateManager:
    return ProducerStateManager("t-0", str(tmp_path), OsFileSystem())


def produce(
    producers: ProducerStateManager, producer_id: int, offset: int, *, transactional: bool = False, timestamp: int = 0
) -> None:
    info = producers.prepare_update(producer_id, AppendOrigin.REPLICATION)
    add(info, offset, transactional=transactional, timestamp=timestamp)
    producers.update([info])
    producers.map_end_offset = offset + 1


def add(info: ProducerAppendInfo, offset: int, *, transactional: bool, timestamp: int = 0) -> None:
    info.append_data_batch(
        epoch=0,
        first_seq=0,
        last_seq=0,
        last_timestamp=timestamp,
        first_offset=offset,
        last_offset=offset,
        is_transactional=transactional,
    )


def unstable(producers: ProducerStateManager) -> int | None:
    found = producers.first_unstable_offset
    return None if found is None else found.message_offset


def snapshots(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.snapshot"))


def test_first_unstable_offset_is_the_earliest_open_or_unreplicated(producers: ProducerStateManager) -> None:
    produce(producers, 1, 10, transactional=True)
    produce(producers, 2, 20, transactional=True)
    assert unstable(producers) == 10
    done = CompletedTxn(1, 10, 30, False)
    assert producers.last_stable_offset(done) == 20
    producers.complete_txn(done)
    assert unstable(producers) == 10, "its marker is not replicated"
    producers.on_high_watermark_updated(30)
    assert unstable(producers) == 10, "the high watermark must be above the marker"
    producers.on_high_watermark_updated(31)
    assert unstable(producers) == 20
    assert producers.first_undecided_offset == 20
    last = CompletedTxn(2, 20, 40, True)
    assert producers.last_stable_offset(last) == 41
    producers.complete_txn(last)
    producers.on_high_watermark_updated(41)
    assert unstable(producers) is None


def test_unknown_transaction_cannot_complete(producers: ProducerStateManager) -> None:
    with pytest.raises(ValueError, match="not started"):
        producers.complete_txn(CompletedTxn(1, 10, 30, False))


def test_idle_producers_expire_by_the_time_of_their_records(producers: ProducerStateManager) -> None:
    produce(producers, 1, 1, timestamp=1000)
    produce(producers, 2, 2, timestamp=1000, transactional=True)
    assert producers.remove_expired(DAY + 999) == 0
    assert producers.remove_expired(DAY + 1000) == 1
    assert set(producers.active_producers) == {2}, "an open transaction keeps its producer"
    produce(producers, 3, 3, timestamp=DAY)
    producers.config.producer_id_expiration_ms = 5
    assert producers.remove_expired(DAY + 5) == 1


def test_lingering_verifications_expire(producers: ProducerStateManager) -> None:
    state = producers.maybe_create_verification_state(1, 0, 0, 500)
    assert producers.maybe_create_verification_state(1, 0, 0, 900) is state
    producers.remove_expired(DAY + 499)
    assert producers.verification_states
    producers.remove_expired(DAY + 500)
    assert not producers.verification_states


entries = st.lists(
    st.builds(
        ProducerStateEntry,
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**15 - 1),
        st.integers(-1, 2**31 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.none()
        | st.builds(
            BatchMetadata,
            st.integers(0, 2**31 - 1),
            st.integers(0, 2**62),
            st.integers(0, 2**31 - 1),
            st.integers(-1, 2**63 - 1),
        ),
    ),
    max_size=5,
)


@given(entries)
def test_snapshots_round_trip(states: list[ProducerStateEntry]) -> None:
    read = decode_snapshot(encode_snapshot(states))
    assert encode_snapshot(read) == encode_snapshot(states)
    for before, after in zip(states, read, strict=True):
        assert (before.producer_id, before.producer_epoch, before.last_seq, before.last_data_offset) == (
            after.producer_id,
            after.producer_epoch,
            after.last_seq,
            after.last_data_offset,
        )


@given(st.data())
def test_damaged_snapshots_are_refused(data: st.DataObject) -> None:
    content = bytearray(encode_snapshot([ProducerStateEntry(1, 0, -1, 5, -1, BatchMetadata(0, 1, 0, 5))]))
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(content))


def test_snapshot_is_taken_once_per_offset(producers: ProducerStateManager, tmp_path: Path) -> None:
    assert producers.take_snapshot() is None, "nothing new"
    produce(producers, 1, 4)
    assert producers.take_snapshot() is not None
    assert producers.take_snapshot() is None
    assert snapshots(tmp_path) == [5]


def test_reload_takes_the_newest_good_snapshot_inside_the_log(producers: ProducerStateManager, tmp_path: Path) -> None:
    for offset in (4, 9, 14):
        produce(producers, offset, offset)
        producers.take_snapshot()
    (tmp_path / "00000000000000000010.snapshot").write_bytes(b"damaged")
    producers.truncate_and_reload(0, 12, now_ms=0)
    assert (set(producers.active_producers), producers.map_end_offset) == ({4}, 5)
    assert snapshots(tmp_path) == [5], "the one beyond the end and the damaged one are deleted"


def test_reload_without_a_snapshot_starts_at_the_log_start(producers: ProducerStateManager) -> None:
    produce(producers, 1, 8)
    producers.truncate_and_reload(3, 5, now_ms=0)
    assert producers.is_empty
    assert producers.map_end_offset == 3


def test_reload_skips_expired_producers(producers: ProducerStateManager) -> None:
    produce(producers, 1, 3, timestamp=0)
    produce(producers, 2, 4, timestamp=500)
    producers.take_snapshot()
    produce(producers, 3, 6)
    producers.truncate_and_reload(0, 5, now_ms=DAY + 100)
    assert set(producers.active_producers) == {2}


def test_reload_restores_open_transactions(producers: ProducerStateManager) -> None:
    produce(producers, 1, 3, transactional=True)
    producers.take_snapshot()
    produce(producers, 2, 4)
    producers.truncate_and_reload(0, 4, now_ms=0)
    assert unstable(producers) == 3


@pytest.mark.parametrize(
    ("bases", "kept"),
    [([0, 5], [5, 15]), ([0, 5, 10, 15], [5, 10, 15]), ([0, 10], [10, 15]), ([0, 20], []), ([], [15])],
)
def test_stray_snapshots(tmp_path: Path, bases: list[int], kept: list[int]) -> None:
    for offset in (5, 10, 15):
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(encode_snapshot([]))
    producers = ProducerStateManager("t-0", str(tmp_path), OsFileSystem())
    producers.remove_stray_snapshots(bases)
    assert producers.snapshot_offsets == snapshots(tmp_path) == kept


def test_snapshots_go_with_their_segments(producers: ProducerStateManager, tmp_path: Path) -> None:
    for offset in (4, 9, 14):
        produce(producers, 1, offset)
        producers.take_snapshot()
    producers.delete_snapshot(5)
    assert producers.mark_snapshot_for_deletion(10) == str(tmp_path / "00000000000000000010.snapshot.deleted")
    assert producers.mark_snapshot_for_deletion(10) is None
    assert snapshots(tmp_path) == [15]


def test_log_start_drops_what_is_below(producers: ProducerStateManager) -> None:
    produce(producers, 1, 10, transactional=True)
    producers.complete_txn(CompletedTxn(1, 10, 12, False))
    producers.on_log_start_offset_incremented(20)
    assert unstable(producers) is None
    assert producers.map_end_offset == 20


def test_snapshot_is_left_out_where_there_is_no_space(tmp_path: Path) -> None:
    fs = FaultyFileSystem(1, disk_full, kinds=NEEDS_ROOM)
    producers = ProducerStateManager("t-0", str(tmp_path), fs)
    produce(producers, 1, 4)
    assert producers.take_snapshot() is None
    assert snapshots(tmp_path) == producers.snapshot_offsets == []
    with pytest.raises(OSError, match="No space"):
        producers.take_snapshot(sync=True, is_required=True)
    assert snapshots(tmp_path) == []
    fs.mend()
    assert producers.take_snapshot() is not None, "it is not taken for done"
    assert snapshots(tmp_path) == [5]


def test_snapshot_that_fails_otherwise_is_a_failure(tmp_path: Path) -> None:
    producers = ProducerStateManager("t-0", str(tmp_path), FaultyFileSystem(1, io_error))
    produce(producers, 1, 4)
    with pytest.raises(OSError, match="Input/output"):
        producers.take_snapshot()


def test_index_entries_of_aborts_are_known_before_they_are_applied(producers: ProducerStateManager) -> None:
    produce(producers, 1, 0, transactional=True)
    produce(producers, 2, 1, transactional=True)
    completed = [CompletedTxn(1, 0, 5, is_aborted=True), CompletedTxn(2, 1, 6, is_aborted=True)]
    assert producers.aborted_by([], completed) == [(1, 0, 5, 1), (2, 1, 6, 7)]
    assert unstable(producers) == 0, "nothing has changed"
    committed = [CompletedTxn(1, 0, 5, is_aborted=False), completed[1]]
    assert producers.aborted_by([], committed) == [(2, 1, 6, 7)]


def test_transactions_begun_in_the_same_append_count(producers: ProducerStateManager) -> None:
    produce(producers, 1, 0, transactional=True)
    info = producers.prepare_update(2, AppendOrigin.REPLICATION)
    add(info, 3, transactional=True)
    assert producers.aborted_by([info], [CompletedTxn(1, 0, 5, is_aborted=True)]) == [(1, 0, 5, 3)]


class Transactions:
    """The transactions of a log, which looks through all of them for each answer."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """The producers by the first offsets."""
        self.unreplicated: dict[int, int] = {}
        """The offsets of the markers by the first offsets."""

    def aborted(self, completed: list[CompletedTxn]) -> list[tuple[int, int, int, int]]:
        """The index entries of an append, whose transactions are open already."""
        found = []
        for done in completed:
            others = [first for first, producer_id in self.open.items() if producer_id != done.producer_id]
            if done.is_aborted:
                stable = min(others, default=done.last_offset + 1)
                found.append((done.producer_id, done.first_offset, done.last_offset, stable))
            del self.open[done.first_offset]
            self.unreplicated[done.first_offset] = done.last_offset
        return found


appends = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["data", "commit", "abort"])), max_size=8),
        st.integers(0, 12),
    ),
    max_size=12,
)


@given(appends)
def test_transactions_agree_with_a_look_at_all_of_them(appended: list[tuple[list[tuple[int, str]], int]]) -> None:
    """Each append has batches of several producers, as those that a follower fetches."""
    model = Transactions()
    with tempfile.TemporaryDirectory() as directory:
        producers = ProducerStateManager("t-0", directory, OsFileSystem())
        offset = 0
        for batches, lag in appended:
            infos: dict[int, ProducerAppendInfo] = {}
            completed: list[CompletedTxn] = []
            for producer_id, what in batches:
                info = infos.get(producer_id) or producers.prepare_update(producer_id, AppendOrigin.REPLICATION)
                infos[producer_id] = info
                if what == "data":
                    if info.updated.current_txn_first_offset < 0:
                        model.open[offset] = producer_id
                    add(info, offset, transactional=True)
                else:
                    done = info.append_end_txn_marker(
                        is_abort=what == "abort", coordinator_epoch=0, producer_epoch=0, offset=offset, timestamp=0
                    )
                    completed += [done] if done is not None else []
                offset += 1
            assert producers.aborted_by(infos.values(), completed) == model.aborted(completed)
            producers.update(infos.values())
            for done in completed:
                producers.complete_txn(done)
            assert unstable(producers) == min([*model.open, *model.unreplicated], default=None)
            producers.on_high_watermark_updated(offset - lag)
            for first in [first for first, last in model.unreplicated.items() if last < offset - lag]:
                del model.unreplicated[first]
            assert unstable(producers) == min([*model.open, *model.unreplicated], default=None)
            assert producers.first_undecided_offset == min(model.open, default=None)


def test_the_transactions_of_a_snapshot_are_in_the_order_of_the_log(tmp_path: Path) -> None:
    producers = ProducerStateManager("t-0", str(tmp_path), OsFileSystem())
    producers.load_entries(ProducerStateEntry(number, current_txn_first_offset=5 - number) for number in (1, 3, 2, 4))
    producers.map_end_offset = 5
    producers.take_snapshot()
    again = ProducerStateManager("t-0", str(tmp_path), OsFileSystem())
    again.truncate_and_reload(0, 5, 0)
    for first in range(1, 5):
        assert unstable(again) == first
        again.complete_txn(CompletedTxn(5 - first, first, 5 + first, is_aborted=False))
        again.on_high_watermark_updated(10)
    assert unstable(again) is None
    assert list(again.producers) == [1, 3, 2, 4], "their order in the file stays"
