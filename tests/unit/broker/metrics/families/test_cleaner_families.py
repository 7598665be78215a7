from __future__ import annotations

import pytest

from odradek.storage.cleaning.clean_job import CleanStats
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker


def test_the_last_compaction(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    prefix = "kafka_log_logcleaner_"
    names = ("max_buffer_utilization_percent", "cleaner_recopy_percent", "max_clean_time_secs")
    found = scraped.scrape()
    assert [found.value(f"{prefix}{name}") for name in names] == [0, 0, 0]
    stats = CleanStats(bytes_read=1000, bytes_written=255, map_utilization=0.5, elapsed_ms=2500)
    broker.services.log_manager.cleaner.last_stats = stats
    found = scraped.scrape()
    assert [found.value(f"{prefix}{name}") for name in names] == [50, 25, 2]


def test_the_last_round(broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaner = broker.services.log_manager.cleaner
    broker.advance(60_000)
    cleaner.dirtiest_ratio = 0.559
    monkeypatch.setattr(cleaner, "_now_ms", broker.clock.time_ms() - 1_234)
    found = scraped.scrape()
    assert found.value("kafka_log_logcleanermanager_max_dirty_percent") == 55
    assert found.value("kafka_log_logcleanermanager_time_since_last_run_ms") == 1_234
