"""A log directory Apache Kafka 3.9.1 has written: we read it, recover it, and write the same bytes ourselves.

Captured by `log_directories/capture.py`: plain, compressed, idempotent and transactional records over three segments,
once after a clean stop and once as a kill leaves it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odradek.protocol.records.batch import AnyBatch, batches
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import read_offsets
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from odradek.storage.producers.producer_state_manager import decode_snapshot, encode_snapshot
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, Disk, read_bytes

CAPTURED = Path(__file__).parent
TP = TopicPartition("captured", 0)
OVERRIDES = {"segment.bytes": "3000", "index.interval.bytes": "200", "segment.index.bytes": "4096"}
EXPECTED = json.loads((CAPTURED / "expected.json").read_text())


def kafka_files(name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((CAPTURED / name / "captured-0").iterdir())}


def batches_in(log: UnifiedLog, isolation: FetchIsolation) -> tuple[list[AnyBatch], set[tuple[int, int]]]:
    """All batches a reader gets, and the aborted transactions it is told of."""
    offset, found, aborted = log.log_start_offset, [], set()
    while offset < log.limit_of(isolation):
        fetched = log.read(offset, 700, isolation, True)
        aborted |= {(txn.producer_id, txn.first_offset) for txn in fetched.aborted_transactions or ()}
        for batch in batches(memoryview(read_bytes(fetched))):
            found.append(batch)
            offset = batch.next_offset
    return found, aborted


def consumed(log: UnifiedLog, isolation: FetchIsolation) -> list[list[object]]:
    """What a consumer makes of it: control batches and aborted data are left out."""
    found, aborted = batches_in(log, isolation)
    open_aborts: set[int] = set()
    records: list[list[object]] = []
    for batch in found:
        if batch.is_control:
            open_aborts.discard(batch.producer_id)
            continue
        if (batch.producer_id, batch.base_offset) in aborted:
            open_aborts.add(batch.producer_id)
        if batch.producer_id not in open_aborts:
            records += [[r.offset, r.timestamp, (r.value or b"").decode()] for r in batch.records()]
    return records


@pytest.fixture(params=["clean", "killed"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> UnifiedLog:
    shutil.copytree(CAPTURED / request.param, tmp_path / "data")
    log = Disk(tmp_path / "data").log(OVERRIDES, tp=TP, clean=request.param == "clean")
    log.update_high_watermark(log.log_end_offset)
    return log


def test_consumers_read_the_same_from_us(opened: UnifiedLog) -> None:
    assert consumed(opened, FetchIsolation.HIGH_WATERMARK) == EXPECTED["read_uncommitted"]
    assert consumed(opened, FetchIsolation.TXN_COMMITTED) == EXPECTED["read_committed"]


def test_times_are_found(opened: UnifiedLog) -> None:
    """Up to the first marker: markers bear the time of the capture, and a lookup finds them like any record."""
    records = EXPECTED["read_uncommitted"]
    for target in {timestamp for _, timestamp, _ in records if timestamp <= NOW + 3000}:
        first = next((timestamp, offset) for offset, timestamp, _ in records if timestamp >= target)
        found = opened.fetch_offset_by_timestamp(target)
        assert found is not None
        assert found[:2] == first


def test_state_is_taken_over(opened: UnifiedLog) -> None:
    assert opened.log_end_offset == 139
    assert [tuple(entry) for entry in opened.state.leader_epochs.entries] == [(0, 0)]
    assert opened.topic_id is not None
    last = kafka_files("clean")["00000000000000000139.snapshot"]
    expected = sorted(decode_snapshot(last), key=lambda entry: entry.producer_id)
    ours = sorted(opened.active_producers().values(), key=lambda entry: entry.producer_id)
    assert encode_snapshot(ours) == encode_snapshot(expected)


def test_recovery_restores_the_files_of_a_clean_stop(tmp_path: Path) -> None:
    shutil.copytree(CAPTURED / "killed", tmp_path / "data")
    log = Disk(tmp_path / "data").log(OVERRIDES, tp=TP)
    log.close()
    compare(log, ".log", ".index", ".timeindex", ".txnindex")


def test_the_same_batches_make_the_same_files(tmp_path: Path) -> None:
    """Logs and indexes byte for byte; snapshots up to the order of their entries, which in Java is that of a hash."""
    source = Disk(tmp_path / "source")
    shutil.copytree(CAPTURED / "clean" / "captured-0", tmp_path / "source" / "captured-0")
    found, _ = batches_in(source.log(OVERRIDES, tp=TP, clean=True), FetchIsolation.LOG_END)
    log = Disk(tmp_path / "copy").log(OVERRIDES, tp=TP)
    for batch in found:
        log.append_as_follower(batch.buffer)
    log.close()
    compare(log, ".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint")
    ours = {path.name: path.read_bytes() for path in Path(log.dir).glob("*.snapshot")}
    theirs = {name: content for name, content in kafka_files("clean").items() if name.endswith(".snapshot")}
    assert {name: entries_of(content) for name, content in ours.items()} == {
        name: entries_of(content) for name, content in theirs.items()
    }


def entries_of(snapshot: bytes) -> list[bytes]:
    return sorted(encode_snapshot([entry]) for entry in decode_snapshot(snapshot))


def compare(log: UnifiedLog, *suffixes: str) -> None:
    ours = {path.name: path.read_bytes().hex() for path in Path(log.dir).iterdir() if path.name.endswith(suffixes)}
    theirs = {name: content.hex() for name, content in kafka_files("clean").items() if name.endswith(suffixes)}
    assert ours == theirs


def test_whole_directory_is_opened_without_recovery_and_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(CAPTURED / "clean", tmp_path / "data")
    manager = LogManager([str(tmp_path / "data")], {}, Disk(tmp_path / "data").environment)
    properties = manager.log_dirs[0].read_meta_properties()
    assert properties is not None
    assert properties["broker.id"] == "0"
    manager.startup({TP.topic: OVERRIDES})
    log = manager.get_log(TP)
    assert log is not None
    assert manager.checkpointed_high_watermark(log) == 139
    assert not caplog.records
    manager.shutdown()
    assert read_offsets(str(tmp_path / "data" / "recovery-point-offset-checkpoint")) == {TP: 139}
    files = {path.name: path.read_bytes() for path in (tmp_path / "data" / "captured-0").iterdir()}
    assert files == kafka_files("clean"), "nothing was touched"
