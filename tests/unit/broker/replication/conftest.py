"""The replicas of two brokers; one follows the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.in_process.replication.following import Following


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    pair = Following(tmp_path)
    yield pair
    pair.shutdown()
