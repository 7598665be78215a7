from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.dump_log.java_text import java_string
from odradek.broker.tools.dump_log.log_dump import LogDumpOptions, OffsetPairs, dump_log
from odradek.broker.tools.dump_log.record_decoders import plain_decoder
from odradek.broker.tools.dump_log.rows import TextRows
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.control_records import SnapshotHeaderRecord
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.control import ControlRecordType, build_control_batch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.disks.logs import NOW, batch, marker

DECODER = plain_decoder(java_string, java_string)
BATCH = (
    "baseOffset: 5 lastOffset: 5 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 2 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 1700000000000 size: 70 magic: 2 compresscodec: none crc: 3919285720 isvalid: true"
)


def dump(
    path: Path, content: bytes, *, name: str = f"{5:020d}.log", **options: bool | int
) -> tuple[list[str], OffsetPairs]:
    file = path / name
    file.write_bytes(content)
    written: list[str] = []
    pairs = dump_log(str(file), LogDumpOptions(decoder=DECODER, **options), TextRows(written.append))  # type: ignore[arg-type]
    return "".join(written).splitlines(), pairs


def test_a_batch_and_its_record(tmp_path: Path) -> None:
    content = bytes(batch(b"v", base_offset=5, epoch=2))
    lines, _ = dump(tmp_path, content, is_deep=True, prints_contents=True)
    assert lines == [
        "Log starting offset: 5",
        BATCH,
        "| offset: 5 CreateTime: 1700000000000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] key: k payload: v",
    ]
    assert dump(tmp_path, content)[0] == lines[:2]
    lines, _ = dump(tmp_path, content, is_deep=True, prints_contents=True, prints_metadata=False)
    assert lines[2] == "| key: k payload: v"


def test_trailing_bytes_are_reported_unless_the_size_is_limited(tmp_path: Path) -> None:
    content = bytes(batch(b"v", base_offset=5, epoch=2))
    assert dump(tmp_path, content + content[:-1])[0][-1] == f"Found 69 invalid bytes at the end of {5:020d}.log"
    assert dump(tmp_path, content + content[:-1], max_bytes=139)[0] == ["Log starting offset: 5", BATCH]
    assert dump(tmp_path, content + content[:-1], max_bytes=69)[0] == ["Log starting offset: 5"]


def test_gaps_between_records_are_remembered(tmp_path: Path) -> None:
    content = b"".join(bytes(batch(b"a", b"b", base_offset=offset)) for offset in (5, 7, 20, 9))
    _, pairs = dump(tmp_path, content, is_deep=True)
    assert list(pairs.newest_first()) == [(21, 9), (8, 20)]
    assert not dump(tmp_path, content)[1], "only records are looked at"


def test_markers(tmp_path: Path) -> None:
    lines, _ = dump(tmp_path, bytes(marker(ControlRecordType.COMMIT, producer_id=1, coordinator_epoch=4)), is_deep=True)
    assert lines[2].endswith(" headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 4")


def test_control_records_of_kraft(tmp_path: Path) -> None:
    header = encode(SnapshotHeaderRecord(last_contained_log_timestamp=3), 0)
    content = b"".join(
        bytes(build_control_batch(SimpleRecord(NOW, key, header))) for key in (b"\0\0\0\3", b"\0\0\0\2", b"\0\0\0\x63")
    )
    lines, _ = dump(tmp_path, content, name=f"{9:020d}-{2:010d}.checkpoint", is_deep=True)
    assert lines[0] == "Snapshot end offset: 9, epoch: 2"
    assert lines[2].endswith(' SnapshotHeader {"version":0,"lastContainedLogTimestamp":3}')
    assert lines[4].endswith(" controlType: LEADER_CHANGE(2)")
    assert lines[6].endswith(" controlType: UNKNOWN(99)")
    assert dump(tmp_path, b"", name="bootstrap.checkpoint")[0] == ["KRaft bootstrap snapshot"]


@pytest.mark.parametrize("name", ["x.log", "x.checkpoint"])
def test_a_name_that_says_no_offset_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="x"):
        dump(tmp_path, b"", name=name)


def test_messages_of_old(tmp_path: Path) -> None:
    records = [Record(5, NOW, b"k", b"v"), Record(6, NOW + 1, None, None)]
    content = build_messages(records, 1, base_offset=5, compression_type=1)
    lines, _ = dump(tmp_path, content, is_deep=True, prints_contents=True)
    assert lines[1].startswith("offset: 6 position: 0 CreateTime: 1700000000001 size: ")
    assert " magic: 1 compresscodec: gzip crc: " in lines[1]
    assert lines[2].startswith("| offset: 5 CreateTime: 1700000000000 keySize: 1 valueSize: 1 isValid: true crc: ")
    assert lines[2].endswith("} key: k payload: v")
    assert lines[3].startswith("| offset: 6 CreateTime: 1700000000001 keySize: -1 valueSize: -1 isValid: true crc: ")


@pytest.mark.parametrize(("position", "byte", "said"), [(16, 0x82, "Invalid magic -126"), (22, 0x07, "type id: 7")])
def test_unreadable_batch_is_an_error_after_the_readable_lines(
    tmp_path: Path, position: int, byte: int, said: str
) -> None:
    content = bytearray(batch(b"v"))
    content[position] = byte
    with pytest.raises(CorruptRecordError, match=said):
        dump(tmp_path, bytes(content))


def test_a_damaged_batch_is_printed_as_invalid(tmp_path: Path) -> None:
    content = bytearray(build_batch([SimpleRecord(NOW, b"k", b"v")]))
    content[-2] ^= 1
    assert dump(tmp_path, bytes(content))[0][1].endswith("isvalid: false")
    content[53] = 0x80
    assert "lastSequence: -2130706433" in dump(tmp_path, bytes(content))[0][1]
