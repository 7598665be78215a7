"""Log files byte for byte: what Apache Kafka 3.9 writes for the same appends, and worked examples of the formats."""

from __future__ import annotations

import struct
from pathlib import Path

from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.checkpoint_files import encode_epochs, encode_offsets, encode_partition_metadata
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.offsets import EpochEntry
from odradek.storage.producers.producer_state import BatchMetadata, ProducerStateEntry
from odradek.storage.producers.producer_state_manager import decode_snapshot, encode_snapshot
from odradek.storage.segment.offset_index import OffsetIndex
from odradek.storage.segment.time_index import TimeIndex
from odradek.storage.segment.transaction_index import AbortedTxn, TransactionIndex
from tests.support.disks.logs import NOW, Disk, append, marker

ONE_RECORD = bytes.fromhex(
    "0000000000000000 0000003a 00000000 02 e99b8dd8 0000 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001 10 00 00 00 02 6b 02 76 00"
)
COMMIT_AT_9 = bytes.fromhex(
    "0000000000000009 00000042 00000003 02 ef262843 0030 00000000 0000018bcfe56800 0000018bcfe56800"
    "00000000000003e8 0000 ffffffff 00000001 20 00 00 00 08 0000 0001 0c 0000 00000004 00"
)
SNAPSHOT_OF_ONE_PRODUCER = bytes.fromhex(
    "0001 825ee0a6 00000001 00000000000003e8 0000 00000002 0000000000000007 00000002"
    "0000018bcfe56807 ffffffff 0000000000000005"
)
SNAPSHOT_OF_NONE = bytes.fromhex("0001 48674bc7 00000000")
INDEX_OF_FIVE = bytes.fromhex(
    "00000006 0000009c 0000000e 000001cb 00000016 000002fa 0000001a 000003b0 0000001f 00000475"
)


def index_of(path: Path, content: bytes, base_offset: int = 0) -> OffsetIndex:
    path.write_bytes(content)
    return OffsetIndex(str(path), base_offset, 1024, OsFileSystem(), OpenFiles())


def test_segment_of_one_record(tmp_path: Path) -> None:
    """One batch makes no offset entry; at the close its time goes into the time index and the indexes are cut."""
    log = Disk(tmp_path).log()
    append(log, b"v")
    log.close()
    files = {path.name: path.read_bytes() for path in Path(log.dir).iterdir()}
    assert files == {
        "00000000000000000000.log": ONE_RECORD,
        "00000000000000000000.index": b"",
        "00000000000000000000.timeindex": bytes.fromhex("0000018bcfe56800 00000000"),
        "00000000000000000001.snapshot": SNAPSHOT_OF_NONE,
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }


def test_marker_appended_at_offset_9(tmp_path: Path) -> None:
    log = Disk(tmp_path).log(log_start_offset=9)
    commit = marker(ControlRecordType.COMMIT, producer_id=1000, coordinator_epoch=4)
    log.append_as_leader(commit, 3, origin=AppendOrigin.COORDINATOR)
    assert Path(log.dir, "00000000000000000009.log").read_bytes() == COMMIT_AT_9


def test_offset_index_entry(tmp_path: Path) -> None:
    index = index_of(tmp_path / "0.index", b"", base_offset=500)
    index.append(541, 4161)
    index.close()
    assert (tmp_path / "0.index").read_bytes() == bytes.fromhex("00000029 00001041")


def test_offset_index_of_five_entries(tmp_path: Path) -> None:
    index = index_of(tmp_path / "0.index", INDEX_OF_FIVE)
    entries = [tuple(index.entry(slot)) for slot in range(index.entries)]
    assert entries == [(6, 156), (14, 459), (22, 762), (26, 944), (31, 1141)]
    assert index.lookup(25) == (22, 762)


def test_lookup_in_a_segment_with_base_offset_522(tmp_path: Path) -> None:
    """Offset 600 is searched from position 6410 on, offset 523 from the beginning."""
    index = index_of(tmp_path / "522.index", struct.pack(">4i", 65, 6410, 117, 13795), base_offset=522)
    assert index.lookup(600) == (587, 6410)
    assert index.lookup(523) == (522, 0)
    assert index.lookup(639) == (639, 13795)


def test_time_index_entry(tmp_path: Path) -> None:
    path = tmp_path / "500.timeindex"
    index = TimeIndex(str(path), 500, 1024, OsFileSystem(), OpenFiles())
    index.maybe_append(NOW, 541)
    index.close()
    assert path.read_bytes() == bytes.fromhex("0000018bcfe56800 00000029")


def test_transaction_index_entry(tmp_path: Path) -> None:
    path = tmp_path / "0.txnindex"
    TransactionIndex(str(path), 0, OsFileSystem(), OpenFiles()).append(AbortedTxn(1000, 5, 9, 10))
    assert path.read_bytes() == bytes.fromhex(
        "0000 00000000000003e8 0000000000000005 0000000000000009 000000000000000a"
    )


def test_producer_snapshot() -> None:
    entry = ProducerStateEntry(1000, 0, -1, NOW + 7, 5, BatchMetadata(2, 7, 2, NOW + 7))
    assert encode_snapshot([entry]) == SNAPSHOT_OF_ONE_PRODUCER
    (read,) = decode_snapshot(SNAPSHOT_OF_ONE_PRODUCER)
    assert (read.producer_id, read.last_seq, read.last_data_offset, read.current_txn_first_offset) == (1000, 2, 7, 5)
    assert read.batches[0].first_seq == 0
    assert encode_snapshot([]) == SNAPSHOT_OF_NONE


def test_checkpoint_files() -> None:
    offsets = {TopicPartition("orders", 0): 4711, TopicPartition("with-dash", 12): 0}
    assert encode_offsets(offsets) == b"0\n2\norders 0 4711\nwith-dash 12 0\n"
    assert encode_offsets({}) == b"0\n0\n"
    assert encode_epochs([EpochEntry(0, 0), EpochEntry(3, 128)]) == b"0\n2\n0 0\n3 128\n"
    assert encode_partition_metadata(bytes(range(16))) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
