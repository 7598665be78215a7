"""Kafka's DumpLogSegments reads every file of a log directory we have written, and finds nothing to object to."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.unified_log import UnifiedLog
from tests.support.jvm import java_command
from tests.support.logs import NOW, Disk, append, batch, crash_copy, marker

COMPLAINTS = re.compile(
    r"Mismatches|mismatch|[Oo]ut of order|not equal|isvalid: false|Found timestamp|corrupt|Exception|Non-?consecutive|"
    r"unrecognized|Cannot dump",
    re.IGNORECASE,
)
CLOSED, KILLED_AND_RECOVERED = "closed cleanly", "killed and recovered"


def fill(log: UnifiedLog) -> None:
    """Everything a 3.9 log can hold in ZooKeeper mode, over several segments."""
    sequence = 0
    for step in range(400):
        timestamp = NOW + step * 10 - (step % 7) * 25  # not in order: the time index must skip some
        match step % 5:
            case 0:
                append(log, b"plain" * 20, timestamp=timestamp, epoch=step // 200)
            case 1:
                codec = list(CompressionType)[step // 5 % 5]
                append(log, *[b"c" * 40] * 10, timestamp=timestamp, compression=codec, epoch=step // 200)
            case 2:
                append(log, None, timestamp=timestamp, epoch=step // 200)
            case 3:
                append(
                    log,
                    b"idempotent",
                    b"twice",
                    timestamp=timestamp,
                    producer_id=1,
                    producer_epoch=0,
                    base_sequence=sequence,
                    epoch=step // 200,
                )
                sequence += 2
            case _:
                transaction(log, 100 + step % 3, step, timestamp, abort=step % 2 == 0)
        log.update_high_watermark(log.log_end_offset)
    replicated = b"".join(
        bytes(batch(b"r" * 300, base_offset=log.log_end_offset + n, epoch=1, timestamp=NOW + 10**6 + n))
        for n in range(40)
    )
    log.append_as_follower(memoryview(replicated))
    append(log, b"open", producer_id=7, producer_epoch=3, base_sequence=0, is_transactional=True, epoch=1)


def transaction(log: UnifiedLog, producer_id: int, step: int, timestamp: int, *, abort: bool) -> None:
    append(
        log,
        b"in a transaction",
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=step,
        base_sequence=0,
        is_transactional=True,
        epoch=step // 200,
    )
    kind = ControlRecordType.ABORT if abort else ControlRecordType.COMMIT
    end = marker(kind, producer_id=producer_id, producer_epoch=step, timestamp=timestamp)
    log.append_as_leader(end, step // 200, origin=AppendOrigin.COORDINATOR)


@pytest.fixture(scope="module", params=[CLOSED, KILLED_AND_RECOVERED])
def log_files_by_suffix(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Path]]:
    path = tmp_path_factory.mktemp("dump")
    overrides = {"segment.bytes": "20000", "index.interval.bytes": "1000"}
    log = Disk(path / "live").log(overrides)
    fill(log)
    if request.param == KILLED_AND_RECOVERED:
        copy = crash_copy(path / "live", path / "copy")
        for snapshot in sorted((copy / "topic-0").glob("*.snapshot"))[2:]:
            snapshot.unlink()
        log.discard()
        log = Disk(copy).log(overrides)
    log.close()
    files: dict[str, list[Path]] = {}
    for file in sorted(Path(log.dir).iterdir()):
        files.setdefault(file.suffix, []).append(file)
    assert len(files[".log"]) > 3
    assert files[".txnindex"]
    return files


def dump(files: list[Path], *options: str) -> str:
    listed = ",".join(str(file) for file in files)
    answer = subprocess.run(
        java_command("kafka.tools.DumpLogSegments", "--files", listed, *options),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = answer.stdout + answer.stderr
    assert answer.returncode == 0, output[-3000:]
    found = COMPLAINTS.search(output)
    assert found is None, output[max(0, found.start() - 500) : found.end() + 500]
    return answer.stdout


def test_logs_by_deep_iteration(log_files_by_suffix: dict[str, list[Path]]) -> None:
    output = dump(log_files_by_suffix[".log"], "--deep-iteration", "--print-data-log")
    assert output.count("isvalid: true") == output.count("baseOffset:") > 400
    assert "endTxnMarker: ABORT" in output
    assert "endTxnMarker: COMMIT" in output
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", output, re.MULTILINE)]
    assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("options", [(), ("--verify-index-only",), ("--index-sanity-check",)])
def test_indexes_agree_with_the_logs(log_files_by_suffix: dict[str, list[Path]], options: tuple[str, ...]) -> None:
    indexes = log_files_by_suffix[".index"] + log_files_by_suffix[".timeindex"]
    output = dump(indexes, *options)
    if not options:
        assert len(re.findall(r"^offset: \d+ position: \d+", output, re.MULTILINE)) > 50
        assert len(re.findall(r"^timestamp: \d+ offset: \d+", output, re.MULTILINE)) > 50


def test_transaction_indexes(log_files_by_suffix: dict[str, list[Path]]) -> None:
    output = dump(log_files_by_suffix[".txnindex"])
    assert len(re.findall(r"version: 0 producerId: 10\d firstOffset: \d+ lastOffset: \d+", output)) == 40


def test_producer_snapshots(log_files_by_suffix: dict[str, list[Path]]) -> None:
    output = dump(log_files_by_suffix[".snapshot"])
    assert re.search(
        r"producerId: 7 producerEpoch: 3 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong\[\d+\]", output
    )
    assert "producerId: 1 producerEpoch: 0" in output
