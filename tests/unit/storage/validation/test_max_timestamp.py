"""The max timestamp in a header is trusted only near the present."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch, build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.append_info import AppendOrigin
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation import max_timestamp
from odradek.storage.validation.max_timestamp import TRUSTED_DISTANCE_MS, max_timestamp_of
from odradek.storage.validation.validation_rules import ValidationRules
from odradek.storage.validation.validator import validate_and_assign
from tests.support.disks.logs import NOW, Disk, batch

YEAR_MS = 365 * 24 * 3600 * 1000


def claiming(claimed: int, *, timestamp: int = NOW, count: int = 2, base_timestamp: int | None = None) -> RecordBatch:
    """A batch of records from `timestamp` on, with this max timestamp in its header."""
    base = timestamp if base_timestamp is None else base_timestamp
    honest = RecordBatch(batch(*[b"v"] * count, timestamp=timestamp))
    # The deltas in the payload of the unchanged batch are relative to its first record.
    payload = honest.payload if base == timestamp else RecordBatch(shifted(timestamp, base, count)).payload
    fields = {"record_count": count, "base_offset": 0, "last_offset_delta": count - 1, "attributes": 0}
    return RecordBatch(memoryview(assemble_batch(payload, base_timestamp=base, max_timestamp=claimed, **fields)))


def shifted(timestamp: int, base_timestamp: int, count: int) -> memoryview:
    """The same records after one at `base_timestamp`, to which their deltas are relative."""
    records = [SimpleRecord(base_timestamp, b"k", b"v")]
    records += [SimpleRecord(timestamp + index, b"k", b"v") for index in range(count - 1)]
    return memoryview(build_batch(records))


def is_trusted(batch: RecordBatch) -> bool:
    """Whether an append at `NOW` takes over what the header claims."""
    rules = ValidationRules.of_config(LogConfig(), "t-0")
    validated = validate_and_assign([batch], rules, AppendOrigin.CLIENT, next_offset=0, leader_epoch=0, now_ms=NOW)
    return validated.max_timestamp == batch.max_timestamp


@pytest.mark.parametrize(
    ("claimed", "believed"),
    [
        (NOW, True),
        (NOW + TRUSTED_DISTANCE_MS, True),
        (NOW + TRUSTED_DISTANCE_MS + 1, False),
        (0, False),
        (-1, False),
        (NOW - 1, False),
    ],
)
def test_the_header_is_trusted_near_the_present_and_not_below_the_base(claimed: int, believed: bool) -> None:
    assert is_trusted(claiming(claimed)) == believed


@pytest.mark.parametrize(("age", "believed"), [(TRUSTED_DISTANCE_MS, True), (TRUSTED_DISTANCE_MS + 1, False)])
def test_the_past_has_two_sides_too(age: int, believed: bool) -> None:
    assert is_trusted(claiming(NOW - age, timestamp=NOW - YEAR_MS)) == believed


@pytest.mark.parametrize("claimed", [-1, 0, NOW - 1, NOW + YEAR_MS, 2**63 - 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_an_untrusted_max_timestamp_is_computed_from_the_records(claimed: int, codec: int) -> None:
    records = [SimpleRecord(NOW + delta, None, b"v") for delta in (0, 9, 4)]
    data = bytearray(build_batch(records, compression_type=codec))
    honest = RecordBatch(memoryview(bytes(data)))
    data[:61] = honest.header(max_timestamp=claimed)
    assert max_timestamp_of(RecordBatch(memoryview(data))) == NOW + 9


def test_a_base_timestamp_of_nothing_proves_nothing() -> None:
    assert max_timestamp_of(claiming(0, timestamp=NOW, base_timestamp=0)) == NOW


def test_records_without_a_time_have_none_together() -> None:
    assert max_timestamp_of(claiming(5, timestamp=-1, count=1)) == -1


def test_of_very_many_records_only_the_first_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(max_timestamp, "RECORDS_WALKED_MAX", 3)
    assert max_timestamp_of(claiming(0, count=3)) == NOW + 2
    assert max_timestamp_of(claiming(0, count=4)) == NOW + 2, "at least what the first ones say"
    assert max_timestamp_of(claiming(NOW + 99, count=4)) == NOW + 99, "and the header, if it says more"


def test_what_opens_to_too_much_has_the_later_of_its_headers_times(monkeypatch: pytest.MonkeyPatch) -> None:
    data = build_batch([SimpleRecord(NOW + delta, None, b"v" * 500) for delta in (0, 9)], compression_type=1)
    honest = RecordBatch(memoryview(data))
    lying = RecordBatch(memoryview(honest.header(max_timestamp=0) + bytes(honest.payload)))
    opened = len(honest.record_bytes())
    monkeypatch.setattr(max_timestamp, "OPENED_BYTES_MAX", opened)
    assert max_timestamp_of(lying) == NOW + 9
    monkeypatch.setattr(max_timestamp, "OPENED_BYTES_MAX", opened - 1)
    assert (max_timestamp_of(lying), max_timestamp_of(honest)) == (NOW, NOW + 9)


@pytest.mark.parametrize("claimed", [-1, 0])
def test_retention_keeps_what_its_batch_calls_old(tmp_path: Path, claimed: int) -> None:
    log = Disk(tmp_path).log()
    log.append_as_leader(claiming(claimed).buffer, 0)
    log.update_high_watermark(2)
    log.roll()
    assert log.delete_old_segments() == 0
    log.discard()


def test_records_that_end_early_are_refused_where_they_are_decoded(tmp_path: Path) -> None:
    fields = {"record_count": 2, "base_offset": 0, "last_offset_delta": 1, "attributes": 0}
    broken = assemble_batch(claiming(0, count=1).payload, base_timestamp=NOW, max_timestamp=0, **fields)
    log = Disk(tmp_path).log()
    with pytest.raises(KafkaError):
        log.append_as_leader(memoryview(broken), 0)
    log.discard()
