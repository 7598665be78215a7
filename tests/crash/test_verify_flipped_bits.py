"""`odradek verify` finds every flipped bit in a log, a time index or a snapshot.

In the other files, some flipped bits give another valid value: an offset index may have a later batch's end, a
topic another id.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.disks.damaged_logs import CLEAN_DIRECTORY, LOG, copy_of_clean, findings_in

FLIPS = 100


@pytest.mark.parametrize("suffix", [".log", ".timeindex", ".snapshot"])
def test_a_flipped_bit_is_found(tmp_path: Path, suffix: str) -> None:
    directory = copy_of_clean(tmp_path / "data")
    rng = random.Random(suffix)
    files = [path for path in sorted((directory / LOG).glob(f"*{suffix}")) if path.stat().st_size]
    for _ in range(FLIPS):
        path = rng.choice(files)
        content = path.read_bytes()
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        assert findings_in(directory), f"{path.name}: byte {at}, bit {bit}"
        path.write_bytes(content)
    assert findings_in(directory) == []
    assert findings_in(CLEAN_DIRECTORY) == []
