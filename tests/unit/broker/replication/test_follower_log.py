from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.replication.follower_log import follow_watermarks, producers_at
from odradek.protocol.errors import KafkaError
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.async_test import async_test
from tests.support.disks.logs import NOW, Disk, append


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    log = Disk(tmp_path).log()
    for number in range(4):
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=number)
    return log


@pytest.mark.parametrize(("leaders", "own"), [(3, 3), (4, 4), (9, 4), (1, 1)])
def test_the_high_watermark_is_the_leaders_or_the_log_end(log: UnifiedLog, leaders: int, own: int) -> None:
    log.update_high_watermark(2)
    assert follow_watermarks(log, leaders, 0)
    assert log.high_watermark == own
    assert not follow_watermarks(log, leaders, 0)


def test_the_log_start_follows_up_to_the_high_watermark(log: UnifiedLog) -> None:
    assert follow_watermarks(log, 3, 3)
    assert log.log_start_offset == 3
    assert not follow_watermarks(log, 3, 1)
    assert log.log_start_offset == 3
    with pytest.raises(KafkaError):
        follow_watermarks(log, 3, 4)


@async_test
async def test_producers_as_they_were(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    for number in range(4):
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=number)
    found = await producers_at(log, 2, NOW)
    assert found is not None
    assert found.producers[1].last_seq == 1
    assert await producers_at(log, 4, NOW) is None
