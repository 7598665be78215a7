"""Kafka's DumpLogSegments and `odradek dump-log` print the same lines for the same files.

Neither finds a problem in a log directory that we have written.
"""

from __future__ import annotations

import itertools
import random
import re
import shutil
from pathlib import Path

import pytest

from odradek.broker.tools.dump_log.coordinator_decoders import RECORD_TYPES
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataValue,
    OffsetCommitValue,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.damaged_logs import findings_in
from tests.support.disks.logs import NOW, Disk, append, batch, crash_copy, marker
from tests.support.processes.apache.dump_logs import compare, files_argument
from tests.support.wire.messages import random_struct

COMPLAINTS = re.compile(
    r"Mismatches|mismatch|[Oo]ut of order|not equal|isvalid: false|Found timestamp|corrupt|Exception|Non-?consecutive|"
    r"unrecognized|Cannot dump",
    re.IGNORECASE,
)
WRITTEN_BY_APACHE = Path(__file__).parents[2] / "golden" / "log_directories"
INDEX_SUFFIXES = (".index", ".timeindex")
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
    files = by_suffix(Path(log.dir))
    assert len(files[".log"]) > 3
    assert files[".txnindex"]
    return files


ALL_ABOUT_LOGS = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--max-bytes", "1000", "--deep-iteration"),
    ("--value-decoder-class", "kafka.serializer.StringDecoder", "--key-decoder-class"),
    ("--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder"),
)
ALL_ABOUT_INDEXES = ((), ("--verify-index-only",), ("--index-sanity-check",), ("--max-message-size", "200"))


def runs_over(files: dict[str, list[Path]]) -> list[list[str]]:
    """Each file kind with each option that means something for it."""
    runs = [[*options, *files_argument(files[".log"])] for options in ALL_ABOUT_LOGS]
    for suffix in INDEX_SUFFIXES:
        runs += [[*options, *files_argument(files[suffix])] for options in ALL_ABOUT_INDEXES]
    apart = (".log", *INDEX_SUFFIXES, "")  # a name without a dot ends Apache's tool
    return [*runs, files_argument([file for suffix in files if suffix not in apart for file in files[suffix]])]


def by_suffix(directory: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for file in sorted(directory.iterdir()):
        files.setdefault(file.suffix, []).append(file)
    return files


def test_our_files_are_printed_alike_and_faultless(log_files_by_suffix: dict[str, list[Path]]) -> None:
    runs = [run for run in runs_over(log_files_by_suffix) if "200" not in run and not run[1].endswith("LongDecoder")]
    printed = dict(zip(map(tuple, runs), compare(runs), strict=True))
    for run, (status, stdout, stderr) in printed.items():
        assert status == 0
        complaint = COMPLAINTS.search(stdout + stderr)
        assert complaint is None, f"{run}: {complaint}"
    logs = printed["--print-data-log", *files_argument(log_files_by_suffix[".log"])].stdout
    assert logs.count("isvalid: true") == logs.count("baseOffset:") > 400
    assert "endTxnMarker: ABORT" in logs
    assert "endTxnMarker: COMMIT" in logs
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", logs, re.MULTILINE)]
    assert offsets == list(range(len(offsets)))
    indexes = "".join(printed[tuple(files_argument(log_files_by_suffix[suffix]))].stdout for suffix in INDEX_SUFFIXES)
    assert len(re.findall(r"^offset: \d+ position: \d+", indexes, re.MULTILINE)) > 50
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", indexes, re.MULTILINE)) > 50
    others = list(printed.values())[-1].stdout
    assert len(re.findall(r"version: 0 producerId: 10\d firstOffset: \d+ lastOffset: \d+", others)) == 40
    assert re.search(r"Id: 7 producerEpoch: 3 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong\[\d+\]", others)
    assert "producerId: 1 producerEpoch: 0" in others


def test_both_take_the_zeros_of_a_truncated_index_for_an_entry(tmp_path: Path) -> None:
    """An index of a running broker, whose only entry was truncated."""
    disk = Disk(tmp_path)
    log = disk.log({"index.interval.bytes": "100"})
    for step in range(3):
        append(log, b"x" * 60, timestamp=NOW + step)
    indexes = [file for file in sorted(Path(log.dir).iterdir()) if file.suffix in INDEX_SUFFIXES]
    assert all(any(index.read_bytes()) for index in indexes)
    log.truncate_to(1)
    assert [index.read_bytes() for index in indexes] == [bytes(4096)] * 2
    (printed,) = compare([files_argument(indexes)])
    assert f"Index timestamp: 0, log timestamp: {NOW}" in printed.stderr
    log.close()


def test_files_of_apache_are_printed_alike() -> None:
    """Compressed by four codecs, idempotent, transactional, compacted; clean and killed; with the decoders."""
    runs = [
        run
        for name in ("clean/captured-0", "killed/captured-0", "internal_topics/worked-on-0")
        for run in runs_over(by_suffix(WRITTEN_BY_APACHE / name))
    ]
    for option, name in (
        ("--offsets-decoder", "__consumer_offsets-0"),
        ("--transaction-log-decoder", "__transaction_state-0"),
    ):
        files = by_suffix(WRITTEN_BY_APACHE / "internal_topics" / name)
        runs += [*runs_over(files), [option, *files_argument(files[".log"])]]
        runs.append([option, "--skip-record-metadata", *files_argument(files[".log"])])
    printed = compare(runs)
    everything = "".join(run.stdout for run in printed)
    assert '"assignedPartitions":[{"topic":"worked-on","partitions":[0,1,2,3,4,5]}]' in everything
    assert "state=PrepareAbort,partitions=[worked-on-1,__consumer_offsets-0," in everything
    assert "baseOffset: 143 " in everything, "compaction has left the last of each key"
    assert any(run.status for run in printed), "binary markers are no longs"


def test_messages_of_old_and_text_that_is_none(tmp_path: Path) -> None:
    rng = random.Random(7)
    data, offset = b"", 100
    for magic, codec, timestamp_type in itertools.product((0, 1), (0, 1, 2, 3), (0, 1)):
        records = [Record(offset + n, NOW + n, b"k" if n else None, b"\xed\xa0\x80\xff" * n or None) for n in range(3)]
        data += build_messages(
            records,
            magic,
            base_offset=offset,
            compression_type=codec,
            timestamp_type=timestamp_type,
            log_append_time=NOW + 50,
        )
        offset += 3 + codec % 2
    for number in range(60):
        headers = (("é", b"x"), ("\udcff", None)) if number % 3 == 0 else ()
        values = [rng.randbytes(rng.randint(0, 12)) for _ in range(3)]
        simple = [SimpleRecord(NOW - n, rng.randbytes(9), value, headers) for n, value in enumerate(values)]
        data += build_batch(simple, base_offset=offset, compression_type=number % 5, partition_leader_epoch=number)
        offset += 3 + number % 2
    files = [tmp_path / f"{100 + cut:020d}.log" for cut in (0, 7)]
    for file, cut in zip(files, (0, 7), strict=True):
        file.write_bytes(data[: len(data) - cut])
    printed = compare([[*options, *files_argument(files)] for options in ALL_ABOUT_LOGS])
    assert "LogAppendTime: 1700000000050" in printed[0].stdout
    assert "invalid bytes at the end of 00000000000000000107.log" in printed[0].stdout
    assert printed[2].stderr.count("Non-consecutive offsets in") == 2


def log_of(path: Path, records: list[SimpleRecord]) -> list[str]:
    path.mkdir()
    file = path / f"{0:020d}.log"
    file.write_bytes(build_batch(records))
    return files_argument([file])


def test_every_kind_and_version_of_group_records(tmp_path: Path) -> None:
    """Also versions of the future, and what is no record at all."""
    rng = random.Random(11)
    records = [SimpleRecord(NOW, key, b"\0") for key in (b"", b"\0\x09x", b"\0\x02\0\1g")]
    for key_version, (key_type, value_type) in RECORD_TYPES.items():
        key = key_version.to_bytes(2, "big") + encode(random_struct(key_type, key_version, rng), key_version)
        records.append(SimpleRecord(NOW, key, None))
        for version in range(value_type.VERSIONS.last + 1):
            for _ in range(6):
                value = random_struct(value_type, version, rng)
                if isinstance(value, GroupMetadataValue):
                    value.protocol_type = rng.choice(("consumer", "connect"))
                    for member in value.members:
                        member.subscription = versioned(ConsumerProtocolSubscription, rng)
                        member.assignment = rng.choice((b"", b"\0\0x", versioned(ConsumerProtocolAssignment, rng)))
                records.append(SimpleRecord(NOW, key, version.to_bytes(2, "big") + encode(value, version)))
    offset = encode(OffsetCommitValue(offset=5, metadata='\x01\x1f\x7f\\"/é\U0001f9f5'), 4)
    records.append(SimpleRecord(NOW, b"\0\0\0\1g\0\1t\0\0\0\0", b"\0\x09" + offset))
    (printed,) = compare([["--offsets-decoder", *log_of(tmp_path / "log", records)]])
    assert "Error at offset 0, skipping. Could not read version from key's buffer." in printed.stdout
    assert "Unknown record type 9 at offset 1, skipping." in printed.stdout
    assert '{"type":"8","data":' in printed.stdout
    assert '{"version":"9","data":{"offset":5,' in printed.stdout


def versioned(kind: type[Message], rng: random.Random) -> bytes:
    version = rng.randint(0, kind.VERSIONS.last)
    return version.to_bytes(2, "big") + encode(random_struct(kind, version, rng), version)


def test_every_state_and_version_of_transactions(tmp_path: Path) -> None:
    """Partitions come in the order of a Scala hash set."""
    rng = random.Random(13)
    records = [SimpleRecord(NOW, b"\0\1x", b"")]
    for state, version in itertools.product(range(8), (0, 1)):
        topics = [
            PartitionsSchema(topic="".join(rng.choices("abcxyz.é", k=5)), partition_ids=list(range(rng.randint(1, 14))))
            for _ in range(rng.randint(1, 8))
        ]
        value = TransactionLogValue(
            producer_id=1000 + state,
            producer_epoch=version,
            transaction_timeout_ms=60000,
            transaction_status=state,
            transaction_partitions=topics,
            transaction_last_update_timestamp_ms=NOW,
            transaction_start_timestamp_ms=NOW - 1,
        )
        key = b"\0\0" + encode(TransactionLogKey(transactional_id=f"tx-{state}"), 0)
        records.append(SimpleRecord(NOW, key, version.to_bytes(2, "big") + encode(value, version)))
    records.append(SimpleRecord(NOW, b"\0\0\0\1t", None))
    good = log_of(tmp_path / "good", records)
    bad = [log_of(tmp_path / f"bad{n}", [SimpleRecord(NOW, key, value)]) for n, (key, value) in enumerate(NO_TXN)]
    printed = compare([["--transaction-log-decoder", *run] for run in (good, *bad)])
    assert "state=PrepareEpochFence,partitions=[" in printed[0].stdout
    assert "payload: <DELETE>" in printed[0].stdout
    assert "unknown::version=1" in printed[0].stdout
    assert [run.status for run in printed] == [0, *[1] * len(NO_TXN)]


NO_TXN = ((None, b""), (b"\0", b""), (b"\0\0\0\1t", b"\0\2"), (b"\0\0\0\1t", b"\0\0" + bytes(14) + b"\x63" + bytes(20)))


def test_damaged_files_are_printed_alike(tmp_path: Path) -> None:
    """A flipped bit or a cut, anywhere in any file: the same lines up to the same end."""
    rng = random.Random(17)
    sources = [
        file
        for name in ("clean/captured-0", "internal_topics/worked-on-0")
        for file in sorted((WRITTEN_BY_APACHE / name).iterdir())
        if file.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot") and file.stat().st_size
    ]
    runs = []
    for number in range(250):
        source = rng.choice(sources)
        directory = tmp_path / str(number)
        directory.mkdir()
        for neighbour in source.parent.glob(f"{source.stem}.*"):
            shutil.copy(neighbour, directory)
        damaged = directory / source.name
        damaged.write_bytes(damage(source.read_bytes(), rng))
        about = ALL_ABOUT_INDEXES if source.suffix.endswith("index") else ALL_ABOUT_LOGS
        runs.append([*rng.choice(about), *files_argument([damaged])])
    printed = compare(runs)
    everything = "".join(run.stdout + run.stderr for run in printed)
    for words in (
        "isvalid: false",
        "invalid bytes at the end",
        "Mismatches in :",
        "Found timestamp mismatch in :",
        "The following indexed offsets are not found in the log.",
        "CRC is no longer valid",
    ):
        assert words in everything
    assert 0 < sum(run.status for run in printed) < len(runs) / 2


def damage(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    if rng.random() < 0.2:
        return content[:at]
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def test_nothing_is_wrong_with_our_files(log_files_by_suffix: dict[str, list[Path]]) -> None:
    log = log_files_by_suffix[".log"][0].parent
    (log.parent / CLEAN_SHUTDOWN_FILE).touch()  # every file is to be right
    assert findings_in(log) == []
