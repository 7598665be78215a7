from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from odradek.broker.metrics.families import broker_families
from odradek.broker.network.frames.memory_pool import ConnectionMemory, MemoryPool
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker


def test_a_fetch_that_waits_is_in_its_purgatory(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])]
    waiting = broker.send(FetchRequest(max_wait_ms=1000, min_bytes=1, topics=topics), 12)
    found = scraped.scrape()
    prefix = "kafka_server_delayedoperationpurgatory_"
    assert found.value(f"{prefix}numdelayedoperations", delayedOperation="Fetch") == 1
    assert found.value(f"{prefix}purgatorysize", delayedOperation="Fetch") >= 1
    assert found.value(f"{prefix}numdelayedoperations", delayedOperation="Produce") == 0
    assert found.value("kafka_server_delayedfetchmetrics_expires_total", fetcherType="consumer") == 0
    broker.finish(waiting)
    found = scraped.scrape()
    assert found.value("kafka_server_delayedfetchmetrics_expires_total", fetcherType="consumer") == 1
    assert found.value("kafka_server_delayedfetchmetrics_expires_total", fetcherType="follower") == 0
    name = "kafka_network_requestmetrics_remotetimems"
    assert scraped.scrape().value(name, request="FetchConsumer", quantile="0.50") > 0


def test_directories_and_the_broker_itself(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    log_dir = broker.services.log_manager.log_dirs[0]
    found = scraped.scrape()
    assert found.value("kafka_log_logmanager_logdirectoryoffline", logDirectory=log_dir.path) == 0
    assert found.value("kafka_server_kafkaserver_brokerstate") == 3
    (info,) = found.labels_of("odradek_info")
    assert info["cluster_id"] == broker.services.cluster_id
    log_dir.failure = OSError("gone")
    found = scraped.scrape()
    assert found.value("kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert found.value("kafka_log_logmanager_logdirectoryoffline", logDirectory=log_dir.path) == 1
    log_dir.failure = None


def test_the_memory_of_requests(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    prefix = "kafka_network_socketserver_memorypool"
    found = scraped.scrape()
    assert (found.value(f"{prefix}available"), found.value(f"{prefix}used")) == (2**63 - 1, 0)
    pool = MemoryPool(1000, lambda function: None)
    assert pool.try_allocate(cast("ConnectionMemory", object()), 300) is not None
    scraped.metrics._sources.sockets.memory_pool = pool
    found = scraped.scrape()
    assert (found.value(f"{prefix}available"), found.value(f"{prefix}used")) == (700, 300)


def test_closed_connections_by_reason(scraped: ScrapedBroker) -> None:
    scraped.sources.sockets.closed_by_reason = Counter({CloseReason.IDLE: 3})
    assert scraped.scrape().value("odradek_connections_closed_total", reason="IDLE") == 3


def test_the_time_of_the_start(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    started_ms = broker.services.clock.time_ms()
    broker.advance(5)
    assert scraped.scrape().value("kafka_server_app_info_start_time_ms") == started_ms


def test_bytes_of_disks(scraped: ScrapedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scraped.scrape().value("kafka_server_kafkaserver_linux_disk_write_bytes") >= 0
    (tmp_path / "io").write_text("rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\n")
    monkeypatch.setattr(broker_families, "PROCESS_IO", tmp_path / "io")
    found = scraped.scrape()
    assert found.value("kafka_server_kafkaserver_linux_disk_read_bytes") == 4096
    assert found.value("kafka_server_kafkaserver_linux_disk_write_bytes") == 8192


def test_operations_whose_time_is_over(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    stats = scraped.metrics._sources.topic_stats
    stats.expired_delete_records = 3
    for _ in range(4):
        stats.produce_expired(TopicPartition("gone", 2))
    stats.produce_expired(TopicPartition("t", 0))
    broker.create_topic("t")
    found = scraped.scrape()
    assert found.value("kafka_server_delayeddeleterecordsmetrics_expires_total") == 3
    expires = "kafka_server_delayedproducemetrics_expires_total"
    assert found.value(expires) == 5
    assert found.value(expires, topic="t", partition="0") == 1
    assert 'expires_total{topic="gone"' not in found.text, "its topic is deleted"
    assert found.value("kafka_network_requestchannel_responsequeuesize") == 0
