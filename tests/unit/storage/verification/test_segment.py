"""Damage in the log and its indexes. Other modules test the single checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.checksum import crc32c
from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE
from odradek.storage.segment.transaction_index import ENTRY
from tests.support.disks.damaged_logs import LOG, Damage, append, copy_of_clean, cut, findings_in, overwrite, remove
from tests.support.disks.logs import NOW, Disk, batch
from tests.support.disks.logs import append as append_batch

FIRST, SECOND, LAST = (f"{LOG}/{base:020d}" for base in (0, 37, 128))
ZEROS = bytes(400)
INDEXED = b"\0\0\0\x20\0\0\4\0"
ABORTED = ENTRY.pack(0, 1, 140, 141, 142)


def too_many_records(directory: Path) -> None:
    """A batch with more records than offsets, and a valid CRC."""
    overwrite(f"{FIRST}.log", 57, b"\0\0\0\2")(directory)
    batch_bytes = (directory / f"{FIRST}.log").read_bytes()[:80]
    overwrite(f"{FIRST}.log", 17, crc32c(batch_bytes[21:], 0, 0).to_bytes(4, "big"))(directory)


IN_ANY_STATE: dict[str, tuple[Damage, str]] = {
    "a flipped bit": (overwrite(f"{FIRST}.log", 75, b"?"), f"{FIRST}.log:0: Record is corrupt (stored crc = "),
    "in the last segment, too": (overwrite(f"{LAST}.log", -2, b"?"), f"{LAST}.log:760: Record is corrupt"),
    "an offset gone back": (overwrite(f"{FIRST}.log", 80, bytes(8)), f"{FIRST}.log:80: offsets 0 to 0 do not follow"),
    "before the segment": (overwrite(f"{SECOND}.log", 0, bytes(8)), f"{SECOND}.log:0: offsets 0 to 0 lie below the"),
    "into the next": (overwrite(f"{FIRST}.log", 2906, b"\0\0\0\0\0\0\0\x25"), "37 to 37 reach into the segment at 37"),
    "too far": (overwrite(f"{LAST}.log", 760, b"\0\0\0\1"), "too far from the segment's base for its indexes"),
    "too many records": (too_many_records, f"{FIRST}.log:0: 2 records cannot have offsets 0 to 0"),
    "no batch": (overwrite(f"{FIRST}.log", 88, bytes(4)), f"{FIRST}.log:80: no batch can be read from here on"),
    "no format": (overwrite(f"{FIRST}.log", 96, b"\7"), f"{FIRST}.log:80: no batch can be read from here on"),
    "torn inside": (cut(f"{FIRST}.log", 2986), f"{FIRST}.log:2906: the last 80 bytes are not a whole batch"),
    "zeros inside": (append(f"{FIRST}.log", ZEROS), f"{FIRST}.log:2987: no batch can be read from here on"),
    "not a batch's start": (
        overwrite(f"{FIRST}.index", 7, b"\xf1"),
        f"{FIRST}.index:0: no batch starts at position 241",
    ),
    "the next batch": (overwrite(f"{FIRST}.index", 6, b"\1\x40"), f"{FIRST}.index:0: the batch at position 320 begins"),
    "behind the log": (
        overwrite(f"{FIRST}.index", -2, b"\x0b\xab"),
        f"{FIRST}.index:88: offset 36 at position 2987 lies",
    ),
    "order of offsets": (overwrite(f"{FIRST}.index", 11, b"\3"), f"{FIRST}.index:8: offset 3 at position 480 does not"),
    "order of positions": (
        overwrite(f"{FIRST}.index", 14, bytes(2)),
        f"{FIRST}.index:8: offset 6 at position 0 does not",
    ),
    "no batch's end": (overwrite(f"{SECOND}.index", 3, b"\x15"), f"{SECOND}.index:0: no batch ends at offset 58"),
    "no batch's end behind": (
        overwrite(f"{FIRST}.index", -5, b"\x30"),
        f"{FIRST}.index:88: no batch ends at offset 48",
    ),
    "half an entry": (append(f"{FIRST}.index", b"\0"), f"{FIRST}.index:96: 97 bytes are no multiple of 8"),
    "uncut index": (
        append(f"{FIRST}.index", ZEROS),
        f"{FIRST}.index:96: 50 entries of zeros: the file was not trimmed",
    ),
    "no index": (remove(f"{FIRST}.index"), f"{FIRST}.index: the segment has no such index"),
    "another time": (
        overwrite(f"{FIRST}.timeindex", 7, b"\x1f"),
        f"{FIRST}.timeindex:0: the batch that ends at offset 3",
    ),
    "order of times": (overwrite(f"{FIRST}.timeindex", 12, bytes(8)), f"{FIRST}.timeindex:12: timestamp 0 at offset 6"),
    "no end": (overwrite(f"{SECOND}.timeindex", 11, b"\x15"), f"{SECOND}.timeindex:0: no batch ends at offset 58"),
    "times behind": (
        overwrite(f"{FIRST}.timeindex", -1, b"\x30"),
        f"{FIRST}.timeindex:132: timestamp 1700000000360 at",
    ),
    "half a time": (append(f"{FIRST}.timeindex", b"\0"), f"{FIRST}.timeindex:144: 145 bytes are no multiple of 12"),
    "uncut time index": (append(f"{FIRST}.timeindex", bytes(24)), f"{FIRST}.timeindex:144: 2 entries of zeros"),
    "no time index": (remove(f"{FIRST}.timeindex"), f"{FIRST}.timeindex: the segment has no such index"),
}

OF_A_BROKER_AT_WORK: dict[str, tuple[Damage, str]] = {
    "torn end": (cut(f"{LAST}.log", 800), f"{LAST}.log:760: the last 40 bytes are not a whole batch"),
    "preallocated log": (append(f"{LAST}.log", ZEROS), f"{LAST}.log:838: no batch can be read from here on"),
    "preallocated index": (append(f"{LAST}.index", ZEROS), f"{LAST}.index:24: 50 entries of zeros"),
    "a page of times": (append(f"{LAST}.timeindex", bytes(4048)), f"{LAST}.timeindex:4092: 4096 bytes are no multiple"),
    "indexed ahead": (
        append(f"{LAST}.index", INDEXED),
        f"{LAST}.index:24: offset 160 at position 1024 lies",
    ),
    "timed ahead": (append(f"{LAST}.timeindex", b"\2" + bytes(10) + b"\x20"), f"{LAST}.timeindex:48: timestamp 144115"),
    "aborted ahead": (
        append(f"{LAST}.txnindex", ABORTED),
        "no marker at offset 141",
    ),
    "half aborted": (
        append(f"{LAST}.txnindex", b"\0"),
        f"{LAST}.txnindex:102: 1 bytes at the end are not a whole entry",
    ),
    "no index yet": (remove(f"{LAST}.*index"), f"{LAST}.index: the segment has no such index"),
}


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "open"])
@pytest.mark.parametrize(("damage", "said"), IN_ANY_STATE.values(), ids=IN_ANY_STATE)
def test_damage_is_found_in_any_state(tmp_path: Path, damage: Damage, said: str, is_clean: bool) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=is_clean)
    damage(directory)
    found = findings_in(directory)
    assert any(said in line for line in found), found


@pytest.mark.parametrize(("damage", "said"), OF_A_BROKER_AT_WORK.values(), ids=OF_A_BROKER_AT_WORK)
def test_what_a_broker_at_work_leaves_is_damage_only_after_a_clean_stop(
    tmp_path: Path, request: pytest.FixtureRequest, damage: Damage, said: str
) -> None:
    directory = copy_of_clean(tmp_path / "data")
    damage(directory)
    found = findings_in(directory)
    assert any(said in line for line in found), found
    (directory / CLEAN_SHUTDOWN_FILE).unlink()
    assert findings_in(directory) == (
        ["recovery-point-offset-checkpoint: captured-0: offset 139 lies after the log end 138"]
        if "torn" in request.node.name
        else []
    )


def test_a_damaged_batch_is_the_only_finding(tmp_path: Path) -> None:
    directory = copy_of_clean(tmp_path / "data")
    overwrite(f"{SECOND}.log", 300, b"?")(directory)
    assert len(findings_in(directory)) == 1


def test_an_index_of_several_batches_at_once_is_right(tmp_path: Path) -> None:
    """A follower of Apache Kafka indexes the last offset of a fetch with the position of its first batch."""
    log = Disk(tmp_path).log({"index.interval.bytes": "1"})
    for n in range(6):
        append_batch(log, b"x", timestamp=NOW + n)
    log.close()
    index = tmp_path / "topic-0" / f"{0:020d}.index"
    index.write_bytes(b"\0\0\0\2\0\0\0\x46" + b"\0\0\0\5\0\0\0\xd2")  # 1 to 2, and 3 to 5
    assert findings_in(tmp_path) == []


def test_messages_of_old_are_read(tmp_path: Path) -> None:
    from odradek.protocol.records.legacy import build_messages
    from odradek.protocol.records.record import Record

    directory = tmp_path / "old-0"
    directory.mkdir()
    records = [Record(n, NOW + n, b"k", b"v") for n in range(5)]
    old = build_messages(records, 0) + build_messages(
        [Record(n, NOW, b"k", b"v") for n in (5, 6)], 1, base_offset=5, compression_type=1
    )
    (directory / f"{0:020d}.log").write_bytes(old + bytes(batch(b"new", base_offset=7)))
    assert findings_in(tmp_path) == []
    (directory / f"{0:020d}.log").write_bytes(old[:20] + b"?" + old[21:])
    found = findings_in(tmp_path)
    assert len(found) == 1
    assert "old-0/00000000000000000000.log:0: Record is corrupt" in found[0]
    assert found[0].endswith(", offsets up to 0")
