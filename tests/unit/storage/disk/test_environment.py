"""The resources that the logs of a broker share."""

from __future__ import annotations

from pathlib import Path

from odradek.storage.config.log_config import LogConfig
from tests.support.disks.logs import Disk


def test_jitter_stays_below_its_limit_and_the_roll_time(tmp_path: Path) -> None:
    environment = Disk(tmp_path).environment
    asked: list[int] = []

    def random_below(limit: int) -> int:
        asked.append(limit)
        return limit - 1

    environment.random_below = random_below
    assert environment.segment_jitter_ms(LogConfig()) == 0
    assert environment.segment_jitter_ms(LogConfig(segment_jitter_ms=50)) == 49
    assert environment.segment_jitter_ms(LogConfig(segment_jitter_ms=50, segment_ms=10)) == 9
    assert asked == [50, 10]
