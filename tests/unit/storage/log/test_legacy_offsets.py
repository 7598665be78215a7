"""ListOffsets version 0: segment bases by the modification times of their files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.legacy_offsets import legacy_offsets_before
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import Disk, append

NOW_MS = 10_000


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    """Segments at 0, 1 and 2, modified at 1, 2 and 3 seconds; the last one has one record."""
    log = Disk(tmp_path).log()
    for _ in range(3):
        append(log, b"x")
        if log.log_end_offset < 3:
            log.roll()
    for seconds, segment in enumerate(log.segments, start=1):
        os.utime(segment.records.path, ns=(0, seconds * 10**9))
    return log


@pytest.mark.parametrize(
    ("timestamp", "count", "offsets"),
    [
        (-1, 10, [3, 2, 1, 0]),
        (-1, 1, [3]),
        (-2, 10, [0]),
        (2_500, 10, [1, 0]),
        (2_000, 1, [1]),
        (500, 10, []),
        (-1, 0, []),
    ],
)
def test_offsets(log: UnifiedLog, timestamp: int, count: int, offsets: list[int]) -> None:
    assert legacy_offsets_before(log, timestamp, count, NOW_MS) == offsets


@pytest.mark.parametrize("timestamp", [-1, -2, 500])
def test_a_negative_number_of_offsets_is_an_unknown_server_error(log: UnifiedLog, timestamp: int) -> None:
    with pytest.raises(KafkaError) as refused:
        legacy_offsets_before(log, timestamp, -1, NOW_MS)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
