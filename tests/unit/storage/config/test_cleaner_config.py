"""The dynamic config changes that a running cleaner accepts."""

from __future__ import annotations

import pytest

from odradek.storage.config.cleaner_config import OFFSET_MAP_BYTES_MAX, CleanerConfig
from odradek.storage.config.config_def import ConfigError


def test_the_buffer_is_shared_and_bounded() -> None:
    assert CleanerConfig(threads=4).offset_map_bytes == 128 * 1024 * 1024 // 4
    assert CleanerConfig(dedupe_buffer_bytes=2**40).offset_map_bytes == OFFSET_MAP_BYTES_MAX


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_may_be_halved_and_doubled(threads: int) -> None:
    CleanerConfig(threads=4).validate_reconfiguration(CleanerConfig(threads=threads))


@pytest.mark.parametrize(
    ("threads", "reason"), [(0, "at least 1"), (1, "less than half the current value 4"), (9, "more than double")]
)
def test_threads_change_by_no_more(threads: int, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        CleanerConfig(threads=4).validate_reconfiguration(CleanerConfig(threads=threads))
