from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.in_process.scraping import ScrapedBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path, {"odradek.metrics.listener": "0", "odradek.metrics.max.topics": "3"}) as broker:
        yield broker


@pytest.fixture
def scraped(broker: InProcessBroker) -> ScrapedBroker:
    return ScrapedBroker(broker)
