"""Segments whose offsets lie too far apart to be indexed (KAFKA-6264), as compaction by old brokers left them."""

from __future__ import annotations

from pathlib import Path

from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import NOW, batch, read_all

FAR = 2**31
OFFSETS = (5, 7, FAR + 4, FAR + 5, 2 * FAR + 9)
PARTS = [5, FAR + 5, 2 * FAR + 9]
"""What such a segment is split into: the second part begins where the reach of the first ends."""
OVERRIDES = {"index.interval.bytes": "0"}


def write_segment(path: Path, base_offset: int, offsets: tuple[int, ...], tail: bytes = b"") -> Path:
    """A `.log` file with a record at each offset, and nothing else."""
    directory = path / "topic-0"
    directory.mkdir(parents=True, exist_ok=True)
    content = b"".join(
        bytes(batch(b"%d" % offset, base_offset=offset, timestamp=NOW + offset % 1000, epoch=1)) for offset in offsets
    )
    (directory / f"{base_offset:020d}.log").write_bytes(content + tail)
    return directory


def offsets_in(log: UnifiedLog) -> list[int]:
    return [record.offset for record in read_all(log)]


def bases_of(directory: Path) -> list[int]:
    """The base offsets of the segments in a directory."""
    return sorted(int(path.stem) for path in directory.glob("*.log"))
