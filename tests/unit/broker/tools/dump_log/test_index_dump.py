from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.tools.command.output import Form, Output
from odradek.broker.tools.dump_log.index_dump import (
    CorruptIndexError,
    IndexDumpOptions,
    TimeIndexErrors,
    dump_index,
    dump_snapshot,
    dump_time_index,
    dump_txn_index,
)
from odradek.broker.tools.dump_log.rows import JsonRows, TextRows
from odradek.protocol.records.errors import CorruptLogError
from odradek.storage.producers.producer_state import BatchMetadata, ProducerStateEntry
from odradek.storage.producers.producer_state_manager import encode_snapshot
from odradek.storage.segment.transaction_index import ENTRY
from tests.support.disks.logs import NOW, Disk, append

EVERYTHING = IndexDumpOptions()
SANITY = IndexDumpOptions(sanity_only=True)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = Disk(tmp_path_factory.mktemp("disk")).log({"index.interval.bytes": "1"})
    for n in range(4):
        append(log, b"x", timestamp=NOW + n)
    log.close()
    return Path(log.dir)


@pytest.fixture
def index(segment: Path, tmp_path: Path) -> Path:
    shutil.copytree(segment, tmp_path / "t-0")
    return tmp_path / "t-0" / f"{0:020d}.index"


def printed(path: Path, options: IndexDumpOptions = EVERYTHING) -> tuple[list[str], list[tuple[int, int]]]:
    lines: list[str] = []
    mismatches = dump_index(str(path), options, TextRows(lines.append))
    return "".join(lines).splitlines(), mismatches


def printed_times(path: Path, options: IndexDumpOptions = EVERYTHING) -> tuple[list[str], TimeIndexErrors]:
    lines: list[str] = []
    errors = TimeIndexErrors()
    dump_time_index(str(path.with_suffix(".timeindex")), options, TextRows(lines.append), errors)
    return "".join(lines).splitlines(), errors


def test_offset_index(index: Path) -> None:
    assert printed(index) == ([f"offset: {n} position: {n * 70}" for n in (1, 2, 3)], [])
    assert printed(index, IndexDumpOptions(verify_only=True)) == ([], [])
    assert printed(index, SANITY) == ([f"{index} passed sanity check."], [])


def test_an_empty_index_says_so(index: Path) -> None:
    index.write_bytes(b"")
    assert printed(index) == ([f"{index} is empty."], [])


def test_zero_fill_is_the_end(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:8] + bytes(80))
    assert printed(index) == (["offset: 1 position: 70"], [])


def test_an_entry_of_another_batch_is_a_mismatch(index: Path) -> None:
    content = bytearray(index.read_bytes())
    content[3] = 9
    index.write_bytes(content)
    lines, mismatches = printed(index)
    assert lines[0] == "offset: 9 position: 70"
    assert mismatches == [(9, 1)]


@pytest.mark.parametrize(
    ("position", "said"), [(281, "exceeds end position"), (-1, "exceeds"), (211, "no whole batch")]
)
def test_an_entry_that_points_nowhere_ends_the_dump(index: Path, position: int, said: str) -> None:
    index.write_bytes(b"\0\0\0\1" + position.to_bytes(4, "big", signed=True))
    with pytest.raises((CorruptIndexError, CorruptLogError), match=said):
        printed(index)


def test_a_batch_larger_than_the_largest_message_is_not_found(index: Path) -> None:
    with pytest.raises(CorruptIndexError, match="no whole batch"):
        printed(index, IndexDumpOptions(max_message_size=69))
    assert printed(index, IndexDumpOptions(max_message_size=70))[1] == []


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xff\xff\xff\0\0\0\0", "less than the base"), (bytes(9), "multiple of 8")]
)
def test_insane_offset_index(index: Path, content: bytes, said: str) -> None:
    index.write_bytes(content)
    with pytest.raises(CorruptIndexError, match=said):
        printed(index, SANITY)


def test_time_index(index: Path) -> None:
    lines, errors = printed_times(index)
    assert lines == [f"timestamp: {NOW + n} offset: {n}" for n in (1, 2, 3)]
    assert [errors.mismatches, errors.out_of_order, errors.not_found] == [{}, {}, {}]
    assert printed_times(index, SANITY)[0] == [f"{index.with_suffix('.timeindex')} passed sanity check."]


def entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(timestamp.to_bytes(8, "big") + offset.to_bytes(4, "big") for timestamp, offset in pairs)


def test_a_time_index_that_does_not_fit_the_log(index: Path) -> None:
    times = index.with_suffix(".timeindex")
    times.write_bytes(entries((NOW + 1, 1), (NOW + 5, 2), (NOW + 3, 3), (NOW + 6, 9)))
    lines, errors = printed_times(index)
    assert len(lines) == 4
    assert errors.mismatches == {str(times): [(NOW + 5, NOW + 2)]}
    assert errors.out_of_order == {str(times): [(NOW + 3, NOW + 5)]}
    assert errors.not_found == {str(times): [(9, -1)]}


@pytest.mark.parametrize(
    ("content", "said"),
    [(entries((5, 1), (4, 2)), "less than the first timestamp 5"), (entries((5, 1)) + b"x", "multiple of 12")],
)
def test_insane_time_index(index: Path, content: bytes, said: str) -> None:
    index.with_suffix(".timeindex").write_bytes(content)
    with pytest.raises(CorruptIndexError, match=said):
        printed_times(index, SANITY)


def test_transaction_index_up_to_its_last_whole_entry(tmp_path: Path) -> None:
    file = tmp_path / "0.txnindex"
    lines: list[str] = []
    file.write_bytes(ENTRY.pack(0, 1, 2, 3, 4) + b"partial")
    dump_txn_index(str(file), TextRows(lines.append))
    assert lines == ["version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4\n"]
    file.write_bytes(ENTRY.pack(0x100, 1, 2, 3, 4))
    with pytest.raises(CorruptIndexError, match="version 1"):
        dump_txn_index(str(file), TextRows(lines.append))


def test_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "5.snapshot"
    lines: list[str] = []
    complaints: list[str] = []
    with_batch = ProducerStateEntry(1, 2, 3, 4, 5, BatchMetadata(7, 9, 2, 4))
    file.write_bytes(encode_snapshot([with_batch, ProducerStateEntry(8)]))
    dump_snapshot(str(file), TextRows(lines.append), complaints.append)
    assert "".join(lines).split("\n") == [
        "producerId: 1 producerEpoch: 2 coordinatorEpoch: 3 currentTxnFirstOffset: OptionalLong[5] lastTimestamp: 4 "
        "firstSequence: 5 lastSequence: 7 lastOffset: 9 offsetDelta: 2 timestamp: 4",
        "producerId: 8 producerEpoch: -1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: -1 ",
        "",
    ]
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    dump_snapshot(str(file), TextRows(lines.append), complaints.append)
    assert complaints[0].startswith("Snapshot is corrupt (CRC is no longer valid).")


def test_rows_for_json(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, Mapping[str, object]]] = []
    rows = JsonRows(Output(Form.JSON))
    monkeypatch.setattr(rows, "row", lambda kind, facts: found.append((kind, facts)))
    dump_index(str(index), EVERYTHING, rows)
    dump_time_index(str(index.with_suffix(".timeindex")), EVERYTHING, rows, TimeIndexErrors())
    assert found[0] == ("entry", {"offset": 1, "position": 70})
    assert found[3] == ("entry", {"timestamp": NOW + 1, "offset": 1})
    aborted = tmp_path / "0.txnindex"
    aborted.write_bytes(ENTRY.pack(0, 1, 2, 3, 4))
    dump_txn_index(str(aborted), rows)
    facts = {"version": 0, "producerId": 1, "firstOffset": 2, "lastOffset": 3, "lastStableOffset": 4}
    assert found[6:] == [("abortedTransaction", facts)]
    snapshot = tmp_path / "0.snapshot"
    snapshot.write_bytes(encode_snapshot([ProducerStateEntry(7, 2, 3, NOW, -1, BatchMetadata(0, 9, 0, NOW))]))
    dump_snapshot(str(snapshot), rows, found.append)
    kind, producer = found[7]
    assert (kind, producer["producerId"], producer["currentTxnFirstOffset"]) == ("producer", 7, None)
    assert producer["batches"] == [
        {"firstSequence": 0, "lastSequence": 0, "lastOffset": 9, "offsetDelta": 0, "timestamp": NOW}
    ]
