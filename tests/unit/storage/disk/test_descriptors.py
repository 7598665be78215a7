from __future__ import annotations

import errno

import pytest

from odradek.storage.disk.descriptors import RESERVE_MAX, DescriptorLimits, is_out_of_descriptors


@pytest.mark.parametrize(("limit", "reserve"), [(100, 25), (300, 75), (4 * RESERVE_MAX, RESERVE_MAX), (1 << 20, 256)])
def test_the_last_descriptors_are_kept_from_connections_and_half_of_them_from_logs(limit: int, reserve: int) -> None:
    found = DescriptorLimits.of(limit)
    assert found.connections == limit - reserve
    assert found.log_files == limit - reserve // 2
    assert found.open_files == limit // 2


def test_without_a_limit_nothing_is_kept() -> None:
    assert DescriptorLimits.of(-1) == DescriptorLimits()
    assert DescriptorLimits().connections > 1 << 40


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.EMFILE, True), (errno.ENFILE, True), (errno.ENOSPC, False), (errno.EIO, False)]
)
def test_a_lack_of_descriptors_differs_from_a_failure(number: int, expected: bool) -> None:
    assert is_out_of_descriptors(OSError(number, "")) is expected
