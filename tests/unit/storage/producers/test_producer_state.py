"""The rules for appends of idempotent and transactional producers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch
from odradek.protocol.records.layout import CONTROL_MASK, TRANSACTIONAL_MASK
from odradek.storage.append_info import AppendOrigin
from odradek.storage.producers.producer_state import (
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateEntry,
    VerificationState,
)

CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION
PID = 9
MAX = 2**31 - 1


def entry(epoch: int = 0, last_seq: int = 4, txn: int = -1, coordinator_epoch: int = -1) -> ProducerStateEntry:
    return ProducerStateEntry(PID, epoch, coordinator_epoch, 50, txn, BatchMetadata(last_seq, 100, 0, 50))


def info(
    current: ProducerStateEntry | None,
    origin: AppendOrigin = CLIENT,
    verification: VerificationState | None = None,
) -> ProducerAppendInfo:
    return ProducerAppendInfo("t-0", PID, current, origin, verification)


def data(
    append: ProducerAppendInfo,
    first_seq: int,
    last_seq: int | None = None,
    *,
    epoch: int = 0,
    offset: int = 101,
    transactional: bool = False,
) -> None:
    last = first_seq if last_seq is None else last_seq
    append.append_data_batch(
        epoch=epoch,
        first_seq=first_seq,
        last_seq=last,
        last_timestamp=60,
        first_offset=offset,
        last_offset=offset + ((last - first_seq) & MAX),
        is_transactional=transactional,
    )


def end(
    append: ProducerAppendInfo, *, epoch: int = 0, coordinator_epoch: int = 0, offset: int = 200
) -> CompletedTxn | None:
    return append.append_end_txn_marker(
        is_abort=True, coordinator_epoch=coordinator_epoch, producer_epoch=epoch, offset=offset, timestamp=70
    )


@pytest.mark.parametrize(
    ("current", "epoch", "first_seq"),
    [
        (None, 0, 0),
        (None, 3, 77),  # the history of an unknown producer may have been deleted
        (entry(), 0, 5),
        (entry(last_seq=MAX), 0, 0),
        (entry(), 1, 0),
        (ProducerStateEntry(PID), 0, 12),
    ],
)
def test_accepted_sequences(current: ProducerStateEntry | None, epoch: int, first_seq: int) -> None:
    append = info(current)
    data(append, first_seq, epoch=epoch)
    assert (append.updated.last_seq, append.updated.producer_epoch) == (first_seq, epoch)


@pytest.mark.parametrize(
    ("current", "epoch", "first_seq", "code"),
    [
        (entry(), 0, 4, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (entry(), 0, 6, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (entry(), 0, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (entry(last_seq=MAX), 0, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (entry(), 1, 5, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (entry(epoch=3), 2, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_refused_sequences(current: ProducerStateEntry, epoch: int, first_seq: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as error:
        data(info(current), first_seq, epoch=epoch)
    assert error.value.code is code
    data(info(current, REPLICATION), first_seq, epoch=epoch)  # a follower accepts what the leader accepted


def test_coordinators_have_no_sequences_but_epochs() -> None:
    data(info(entry(), COORDINATOR), -1)
    with pytest.raises(KafkaError) as error:
        data(info(entry(epoch=2), COORDINATOR), -1, epoch=1)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_second_batch_of_an_append_follows_the_first() -> None:
    append = info(entry())
    data(append, 5, 6)
    data(append, 7, offset=103)
    with pytest.raises(KafkaError):
        data(append, 9, offset=104)


def test_sequence_above_the_lowest_seen_by_a_verification_is_out_of_order() -> None:
    verification = VerificationState(0, 3, 0)
    with pytest.raises(KafkaError) as error:
        data(info(None, verification=verification), 4, transactional=True)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    data(info(None, verification=verification), 3, transactional=True)


def test_verification_tracks_the_lowest_sequence_of_the_newest_epoch() -> None:
    state = VerificationState(0, 5, 0)
    state.maybe_update_lowest_sequence_and_epoch(3, 0)
    state.maybe_update_lowest_sequence_and_epoch(4, 0)
    assert (state.lowest_sequence, state.epoch) == (3, 0)
    state.maybe_update_lowest_sequence_and_epoch(9, 1)
    assert (state.lowest_sequence, state.epoch) == (9, 1)


def test_transaction_begins_with_its_first_batch_and_ends_with_its_marker() -> None:
    append = info(entry())
    data(append, 5, transactional=True)
    data(append, 6, offset=102, transactional=True)
    assert [txn.first_offset.message_offset for txn in append.started_transactions] == [101]
    assert end(append) == CompletedTxn(PID, 101, 200, True)
    assert append.updated.current_txn_first_offset == -1
    assert end(append) is None, "nothing was open any more"


def test_plain_batch_inside_a_transaction_is_refused() -> None:
    with pytest.raises(KafkaError) as error:
        data(info(entry(txn=90)), 5)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_older_coordinator_is_fenced() -> None:
    with pytest.raises(KafkaError) as error:
        end(info(entry(coordinator_epoch=5), COORDINATOR), coordinator_epoch=4)
    assert error.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(info(entry(coordinator_epoch=5), REPLICATION), coordinator_epoch=4)


def test_marker_with_a_newer_epoch_forgets_the_batches() -> None:
    append = info(entry(), COORDINATOR)
    end(append, epoch=1)
    updated = append.updated
    assert (updated.producer_epoch, updated.batches, updated.last_timestamp) == (1, [], 70)


def test_an_update_keeps_the_last_five_batches() -> None:
    current = entry()
    for sequence in range(5, 11):
        append = info(current)
        data(append, sequence)
        current = append.updated
    assert [batch.last_seq for batch in current.batches] == [6, 7, 8, 9, 10]


@given(st.integers(0, MAX), st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_duplicates_are_known_for_five_batches(first: int, sizes: list[int]) -> None:
    state = ProducerStateEntry(PID)
    batches = []
    sequence, offset = first, 0
    for size in sizes:
        last = (sequence + size - 1) & MAX
        state.add_batch(0, BatchMetadata(last, offset + size - 1, size - 1, 0))
        batches.append((sequence, last, offset))
        sequence, offset = (last + 1) & MAX, offset + size
    for position, (first_seq, last_seq, first_offset) in enumerate(reversed(batches)):
        found = state.find_duplicate(0, first_seq, last_seq)
        if position < 5:
            assert found is not None
            assert found.first_offset == first_offset
        else:
            assert found is None
    assert state.find_duplicate(1, batches[-1][0], batches[-1][1]) is None


def test_preparing_changes_nothing() -> None:
    current = entry()
    data(info(current), 5, transactional=True)
    assert (current.last_seq, current.current_txn_first_offset, len(current.batches)) == (4, -1, 1)


@given(
    last_seq=st.sampled_from([0, 4, MAX - 1, MAX]),
    first_seq=st.sampled_from([0, 1, 5, MAX]),
    epoch=st.integers(0, 1),
    txn=st.sampled_from([-1, 90]),
    batches=st.integers(0, 5),
    attributes=st.sampled_from([0, 3, TRANSACTIONAL_MASK, CONTROL_MASK]),
    count=st.integers(1, 3),
)
def test_what_is_next_passes_all_checks_and_is_added_as_by_them(
    last_seq: int, first_seq: int, epoch: int, txn: int, batches: int, attributes: int, count: int
) -> None:
    """The short way for most batches, and the long one for all."""

    def current() -> ProducerStateEntry:
        found = entry(last_seq=last_seq, txn=txn)
        found.batches = [*[BatchMetadata(9, 90 + index, 0, 40) for index in range(5)], *found.batches][
            5 - batches + 1 :
        ]
        return found

    short = current()
    batch = RecordBatch(
        memoryview(
            assemble_batch(
                b"",
                base_offset=0,
                attributes=attributes,
                last_offset_delta=count - 1,
                base_timestamp=60,
                max_timestamp=60,
                producer_id=PID,
                producer_epoch=epoch,
                base_sequence=first_seq,
                record_count=count,
            )
        )
    )
    follows = first_seq == (0 if last_seq == MAX else last_seq + 1)
    is_plain = not attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)
    has_last = bool(short.batches)
    assert short.is_next(batch) == (has_last and follows and epoch == 0 and txn == -1 and is_plain)
    if not short.is_next(batch):
        return
    assert short.find_duplicate(epoch, batch.base_sequence, batch.last_sequence) is None
    long = info(current())
    data(long, first_seq, batch.last_sequence, epoch=epoch)
    short.add_next(100 + count, count - 1, 60)
    assert {name: getattr(short, name) for name in short.__slots__} == {
        name: getattr(long.updated, name) for name in short.__slots__
    }
