"""Damage to the files of a killed broker, and the checks after it: the cases of a short test and of a long one.

A killed directory is kept in memory. For each case the files are put back, one of them is damaged, and the log is
loaded as by a start; nothing is fsynced and no process is started, so that a hundred thousand cases take minutes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import Disk, append, marker, read_bytes

TAIL_BYTES = 64 * 1024
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Directory of many cases: in memory, because they need no disk."""
OUTSIDE_THE_CHECKSUM = (*range(8), *range(12, 16))
"""Base offset and leader epoch."""


class UnsyncedFileSystem(OsFileSystem):
    """The real disk without fsync, for tests without a loss of power."""

    def sync(self, fd: int) -> None:
        pass

    def sync_path(self, path: str) -> None:
        pass

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        super().write_file(path, content)


class KilledLog:
    """The files of a log whose broker was killed: one flushed segment, and an active one of about `tail_bytes`.

    Plain and idempotent batches, committed and aborted transactions, several leader epochs.
    """

    def __init__(self, path: Path, tail_bytes: int) -> None:
        self._cases = 0
        self._turns = 0
        self.overrides = {"segment.bytes": str(tail_bytes + 2000), "index.interval.bytes": "500"}
        self._workspace = path / "log"
        log = self._open(path / "live", 0)
        self._fill(log, 1200, 0)
        self.base = log.roll().base_offset
        self._fill(log, tail_bytes, 2)
        self.end = log.log_end_offset
        source = path / "live" / "topic-0"
        self.files = {file.name: file.read_bytes() for file in source.iterdir()}
        self._directory = self._workspace / "topic-0"
        self._directory.mkdir(parents=True)

    @property
    def tail(self) -> bytes:
        """The records of the active segment."""
        return self.files[f"{self.base:020d}.log"]

    def name(self, suffix: str, base: int | None = None) -> str:
        """A file of the active segment, or of another one."""
        return f"{self.base if base is None else base:020d}{suffix}"

    def starts(self) -> list[tuple[int, int]]:
        """Positions and base offsets of the batches of the active segment, and of what would follow them."""
        found, position = [], 0
        for batch in batches(memoryview(self.tail)):
            found.append((position, batch.base_offset))
            position += batch.size_in_bytes
        return [*found, (position, self.end)]

    def log_end_after(self, file: str, content: bytes) -> int:
        """Damage one file, load the log, check all that it serves, append to it; where it ended before that."""
        for path in self._directory.iterdir():
            path.unlink()
        for name, intact in self.files.items():
            (self._directory / name).write_bytes(content if name == file else intact)
        log = self._open(self._workspace, self.base)
        end = log.log_end_offset
        assert served(log) >= end
        self._cases += 1
        if self._cases % 16 == 0:
            assert append(log, b"life goes on", epoch=9) == end
        log.discard()
        return end

    def _open(self, path: Path, recovery_point: int) -> UnifiedLog:
        return Disk(path, fs=UnsyncedFileSystem()).log(self.overrides, recovery_point=recovery_point)

    def _fill(self, log: UnifiedLog, size: int, first_epoch: int) -> None:
        """Append until the active segment has `size` bytes; the leader epoch changes three times at the beginning."""
        segment, epoch = log.segments.active, first_epoch
        while segment.size < size:
            turn = self._turns
            append(log, b"plain %d" % turn, b"x" * (turn % 7), epoch=epoch)
            append(log, b"y", epoch=epoch, producer_id=1, producer_epoch=0, base_sequence=turn)
            producer = {"producer_id": 100 + turn, "producer_epoch": 0, "base_sequence": 0}
            append(log, b"z" * 300, epoch=epoch, is_transactional=True, **producer)
            kind = ControlRecordType.ABORT if turn % 2 else ControlRecordType.COMMIT
            log.append_as_leader(marker(kind, producer_id=100 + turn), epoch, origin=AppendOrigin.COORDINATOR)
            epoch = min(epoch + 1, first_epoch + 3)
            self._turns += 1


def served(log: UnifiedLog) -> int:
    """Read everything; asserts that each batch is intact. Where it ends."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read_bytes(log.read(offset, 1 << 20, FetchIsolation.LOG_END, True))
        assert data, f"nothing at {offset}, though the log ends at {log.log_end_offset}"
        for batch in batches(memoryview(data)):
            assert batch.is_valid()
            offset = max(offset, batch.next_offset)
    return offset


def check_cuts(killed: KilledLog) -> int:
    """Cut the active segment at every byte: what is whole stays. How many cases."""
    starts = killed.starts()
    tail, name = killed.tail, killed.name(".log")
    for size in range(len(tail)):
        _, end = next((position, offset) for position, offset in reversed(starts) if position <= size)
        assert killed.log_end_after(name, tail[:size]) == end, f"cut at {size}"
    return len(tail)


def check_flips(killed: KilledLog) -> int:
    """Flip a bit in every byte of the active segment: if the checksum covers it, the log ends before its batch."""
    name = killed.name(".log")
    starts = killed.starts()
    for (position, offset), (following, _) in itertools.pairwise(starts):
        for at in range(position, following):
            end = killed.log_end_after(name, flipped(killed.tail, at))
            assert end == offset or at - position in OUTSIDE_THE_CHECKSUM, f"flipped at {at}"
    return len(killed.tail)


def check_derived_files(killed: KilledLog, step: int = 1) -> int:
    """Cut and flip every byte, or every `step`th, of all files that are made from the batches: all are made anew."""
    count = 0
    for name in derived_files(killed):
        content = killed.files[name]
        for at in range(0, len(content), step):
            for damaged in (flipped(content, at), content[:at]):
                assert killed.log_end_after(name, damaged) == killed.end, f"{name} at {at}"
                count += 1
    return count


def derived_files(killed: KilledLog) -> Iterator[str]:
    """The indexes of the active segment, the transactions of the flushed one, snapshots, leader epochs."""
    yield from (killed.name(suffix) for suffix in (".index", ".timeindex", ".txnindex"))
    yield killed.name(".txnindex", 0)
    yield from (name for name in killed.files if name.endswith(".snapshot"))
    yield "leader-epoch-checkpoint"


def flipped(content: bytes, at: int) -> bytes:
    """One bit of it, another one for each position."""
    damaged = bytearray(content)
    damaged[at] ^= 1 << at % 8
    return bytes(damaged)
