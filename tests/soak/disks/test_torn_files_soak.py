"""Every cut and a flipped bit at every byte of a log's last 64 KB, and at every byte of the files derived from it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks.torn_files import MEMORY, TAIL_BYTES, KilledLog, check_cuts, check_derived_files, check_flips

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture
def killed() -> Iterator[KilledLog]:
    with tempfile.TemporaryDirectory(prefix="odradek-", dir=MEMORY) as path:
        yield KilledLog(Path(path), TAIL_BYTES)


def test_every_cut_of_the_tail(killed: KilledLog) -> None:
    assert check_cuts(killed) >= TAIL_BYTES


def test_a_flipped_bit_in_every_byte_of_the_tail(killed: KilledLog) -> None:
    assert check_flips(killed) >= TAIL_BYTES


def test_damage_to_every_byte_of_what_is_derived(killed: KilledLog) -> None:
    assert check_derived_files(killed) > 10_000
