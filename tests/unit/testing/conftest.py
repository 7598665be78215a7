from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.in_process.observed_broker import ObservedBroker, observed_broker


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[ObservedBroker]:
    with observed_broker(tmp_path / "data") as broker:
        yield broker
