"""Damage to the files of a killed broker: every byte of the tail cut or flipped, every byte of an index flipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.records.batch import batches
from odradek.storage.fetch_data import FetchIsolation
from odradek.storage.unified_log import UnifiedLog
from tests.support.logs import Disk, append, crash_copy, read_all, read_bytes

OVERRIDES = {"segment.bytes": "700", "index.interval.bytes": "100"}
COUNT = 10


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments of a broker that was killed; the recovery point is the base of the second."""
    path = tmp_path_factory.mktemp("torn")
    log = Disk(path / "live").log(OVERRIDES)
    for number in range(COUNT):
        append(log, b"value %d" % number, b"x" * number, epoch=number // 3)
    assert len(log.segments) == 2
    return crash_copy(path / "live", path / "killed")


@pytest.fixture
def workspace(killed: Path, tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "log"
    shutil.copytree(killed, target)
    yield target
    shutil.rmtree(target)


def base_of_second(path: Path) -> int:
    return max(int(file.stem) for file in (path / "topic-0").glob("*.log"))


def check_served(log: UnifiedLog) -> int:
    """Everything that is served is intact and in order; how many records there are."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read_bytes(log.read(offset, 1 << 20, FetchIsolation.LOG_END, True))
        assert data
        for batch in batches(memoryview(data)):
            assert batch.is_valid()
            offset = batch.next_offset
    return len(read_all(log))


def reopen_with(workspace: Path, killed: Path, file: str, content: bytes, recovery_point: int) -> int:
    """Recover a fresh copy in which one file is damaged; the number of records left."""
    for path in (workspace / "topic-0").iterdir():
        path.unlink()
    for path in (killed / "topic-0").iterdir():
        shutil.copy(path, workspace / "topic-0")
    (workspace / "topic-0" / file).write_bytes(content)
    log = Disk(workspace).log(OVERRIDES, recovery_point=recovery_point)
    left = check_served(log)
    assert append(log, b"life goes on", epoch=9) == log.log_end_offset - 1
    log.close()
    return left


def test_log_cut_at_every_byte(workspace: Path, killed: Path) -> None:
    base = base_of_second(killed)
    name = f"{base:020d}.log"
    content = (killed / "topic-0" / name).read_bytes()
    ends = [0]
    for batch in batches(memoryview(content)):
        ends.append(ends[-1] + batch.size_in_bytes)
    for size in range(len(content)):
        whole = sum(1 for end in ends[1:] if end <= size)
        assert reopen_with(workspace, killed, name, content[:size], base) == base + 2 * whole


def test_log_flipped_at_every_byte(workspace: Path, killed: Path) -> None:
    """Base offset and leader epoch lie outside the checksum: a flip there goes unnoticed."""
    base = base_of_second(killed)
    name = f"{base:020d}.log"
    content = (killed / "topic-0" / name).read_bytes()
    starts, position = [], 0
    for batch in batches(memoryview(content)):
        starts.append(position)
        position += batch.size_in_bytes
    for at in range(len(content)):
        index = max(i for i, start in enumerate(starts) if start <= at)
        within = at - starts[index]
        if within < 8 or 12 <= within < 16:
            continue
        damaged = bytearray(content)
        damaged[at] ^= 0x40
        assert reopen_with(workspace, killed, name, bytes(damaged), base) == base + 2 * index


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_active_index_flipped_at_every_byte_is_rebuilt(workspace: Path, killed: Path, suffix: str) -> None:
    base = base_of_second(killed)
    name = f"{base:020d}{suffix}"
    content = (killed / "topic-0" / name).read_bytes()
    for at in range(min(len(content), 64)):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        assert reopen_with(workspace, killed, name, bytes(damaged), base) == 2 * COUNT


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff" * 100, b"0\n1\n", b"0\n1\nx y\n"])
@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "snapshot"])
def test_damaged_small_files_do_not_keep_a_log_from_opening(
    workspace: Path, killed: Path, name: str, content: bytes
) -> None:
    base = base_of_second(killed)
    file = f"{base:020d}.snapshot" if name == "snapshot" else name
    assert os.path.exists(killed / "topic-0" / file)
    assert reopen_with(workspace, killed, file, content, base) == 2 * COUNT
