"""The producer checks of appends."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.producers.producer_checks import ProducerChecks
from odradek.storage.producers.producer_state_manager import ProducerStateManager
from tests.support.disks.logs import batch, marker

CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR


@pytest.fixture
def producers(tmp_path: Path) -> ProducerStateManager:
    return ProducerStateManager("t-0", str(tmp_path), OsFileSystem())


def transactional(sequence: int = 0) -> RecordBatch:
    return RecordBatch(batch(b"v", producer_id=1, producer_epoch=0, base_sequence=sequence, is_transactional=True))


def check(checks: ProducerChecks, data: RecordBatch, offset: int, guard: object | None = None) -> object:
    return checks.check(
        data,
        first_offset=offset,
        last_offset=offset,
        max_timestamp=0,
        origin=COORDINATOR if data.is_control else CLIENT,
        verification_guard=guard,
    )


def test_checking_changes_nothing(producers: ProducerStateManager) -> None:
    producers.config.transaction_verification = False
    checks = ProducerChecks(producers)
    check(checks, transactional(), 0)
    assert producers.is_empty
    assert not checks.has_ongoing_transaction(1)


def test_guard_of_an_earlier_verification_is_not_taken(producers: ProducerStateManager) -> None:
    checks = ProducerChecks(producers)
    old = checks.start_verification(1, 0, 0, 0)
    producers.clear_verification_state(1)
    new = checks.start_verification(1, 0, 0, 0)
    with pytest.raises(KafkaError) as error:
        check(checks, transactional(), 0, old)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    check(checks, transactional(), 0, new)


def test_verification_is_switched_off_and_on_while_the_log_is_open(producers: ProducerStateManager) -> None:
    checks = ProducerChecks(producers)
    producers.config.transaction_verification = False
    check(checks, transactional(), 0)
    producers.config.transaction_verification = True
    with pytest.raises(KafkaError):
        check(checks, transactional(), 0)


def test_markers_need_no_verification(producers: ProducerStateManager) -> None:
    checks = ProducerChecks(producers)
    check(checks, RecordBatch(marker(ControlRecordType.ABORT, producer_id=1)), 0)


def test_applying_opens_and_closes_the_transaction_and_ends_the_verification(
    producers: ProducerStateManager,
) -> None:
    checks = ProducerChecks(producers)
    guard = checks.start_verification(1, 0, 0, 0)
    info, completed = check(checks, transactional(), 0, guard)  # type: ignore[misc]
    checks.apply([info], [])
    assert completed is None
    assert checks.has_ongoing_transaction(1)
    assert not producers.verification_states
    info, completed = check(checks, RecordBatch(marker(ControlRecordType.ABORT, producer_id=1)), 1)  # type: ignore[misc]
    assert producers.aborted_by([info], [completed]) == [(1, 0, 1, 2)]
    checks.apply([info], [completed])
    assert not checks.has_ongoing_transaction(1)
