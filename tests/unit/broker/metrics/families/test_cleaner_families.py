from __future__ import annotations

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.cleaning.clean_job import CleanStats
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce
from tests.support.wire.requests import batch


def test_the_last_compaction(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    prefix = "kafka_log_logcleaner_"
    names = ("max_buffer_utilization_percent", "cleaner_recopy_percent", "max_clean_time_secs")
    found = scraped.scrape()
    assert [found.value(f"{prefix}{name}") for name in names] == [0, 0, 0]
    stats = CleanStats(bytes_read=1000, bytes_written=255, map_utilization=0.5, elapsed_ms=2500)
    broker.services.log_manager.cleaner.last_stats = stats
    found = scraped.scrape()
    assert [found.value(f"{prefix}{name}") for name in names] == [50, 25, 2]


def test_partitions_whose_compaction_failed(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    (log_dir,) = broker.services.log_manager.log_dirs
    manager = "kafka_log_logcleanermanager_uncleanable_"
    assert scraped.scrape().value(f"{manager}bytes", logDirectory=log_dir.path) == 0
    broker.create_topic("t", configs={"cleanup.policy": "compact"})
    produce(broker, "t", batch(b"value", key=b"key"))
    log = broker.services.log_manager.get_log(TopicPartition("t", 0))
    assert log is not None
    log.roll()
    cleaner = broker.services.log_manager.cleaner
    cleaner.uncleanable |= {(log_dir.path, TopicPartition("t", 0)), ("/elsewhere", TopicPartition("t", 0))}
    found = scraped.scrape()
    assert found.value(f"{manager}partitions_count", logDirectory=log_dir.path) == 1
    assert found.value(f"{manager}bytes", logDirectory=log_dir.path) == log.segments.first.size > 0


def test_the_bytes_of_compactions(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.services.log_manager.cleaner.io_bytes = 1_234
    assert scraped.scrape().value("kafka_utils_throttler_cleaner_io_count") == 1_234


def test_the_last_round(broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaner = broker.services.log_manager.cleaner
    broker.advance(60_000)
    cleaner.dirtiest_ratio = 0.559
    cleaner.longest_delay_ms = 7_999
    monkeypatch.setattr(cleaner, "_now_ms", broker.clock.time_ms() - 1_234)
    found = scraped.scrape()
    assert found.value("kafka_log_logcleanermanager_max_dirty_percent") == 55
    assert found.value("kafka_log_logcleaner_max_compaction_delay_secs") == 7
    assert found.value("kafka_log_logcleanermanager_time_since_last_run_ms") == 1_234
