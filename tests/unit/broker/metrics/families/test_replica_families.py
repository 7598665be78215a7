from __future__ import annotations

import pytest

from odradek.broker.metrics.families.replica_families import LATE_TRANSACTION_BUFFER_MS
from odradek.broker.replication.replica_fetchers import ReplicaFetcherManager
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.producers.producer_state import ProducerStateEntry
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce

MANAGER = "kafka_server_replicamanager_"


def test_partitions_and_their_logs(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 2)
    produce(broker, "t", partition=1)
    found = scraped.scrape()
    assert found.value(f"{MANAGER}partitioncount") == found.value(f"{MANAGER}leadercount") == 2
    assert found.value(f"{MANAGER}underreplicatedpartitions") == 0
    assert found.value(f"{MANAGER}atminisrpartitioncount") == 2
    labels = {"topic": "t", "partition": "1"}
    assert found.value("kafka_log_log_logendoffset", **labels) == 1
    assert found.value("kafka_log_log_size", **labels) > 0
    assert found.value("kafka_log_log_numlogsegments", **labels) == 1
    assert found.value("kafka_cluster_partition_insyncreplicascount", **labels) == 1
    assert found.value("kafka_cluster_partition_replicascount", **labels) == 1
    assert found.value("kafka_cluster_partition_underminisr", **labels) == 0
    assert found.value("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0
    assert found.value("kafka_server_replicaalterlogdirsmanager_maxlag", clientId="ReplicaAlterLogDirs") == 0


def test_moves_between_directories(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = broker.services.replica_manager.moves
    monkeypatch.setattr(moves._mover, "lags", lambda: iter((3, 8, 5)))
    moves._mover.failed.add(TopicPartition("t", 0))
    found = scraped.scrape()
    assert found.value("kafka_server_replicaalterlogdirsmanager_maxlag", clientId="ReplicaAlterLogDirs") == 8
    failed = "kafka_server_replicaalterlogdirsmanager_failedpartitionscount"
    assert found.value(failed, clientId="ReplicaAlterLogDirs") == 1


def test_rates_of_the_quotas_of_replication(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    replicas = broker.services.replica_manager
    assert isinstance(replicas.fetchers, ReplicaFetcherManager)
    kinds = ("leader", "follower", "alterlogdirs")
    found = scraped.scrape()
    assert [found.value(f"kafka_server_{kind}replication_byte_rate") for kind in kinds] == [0, 0, 0]
    replicas.reads.throttle.record(1_000)
    replicas.fetchers._settings.fetcher.quota.record(2_000)
    replicas.moves._mover._quota.record(3_000)
    found = scraped.scrape()
    rates = [found.value(f"kafka_server_{kind}replication_byte_rate") for kind in kinds]
    assert rates == [1_000, 2_000, 3_000], "of one window, a second"


def test_a_partition_with_a_dead_follower_is_under_replicated_and_below_its_minimum(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t", configs={"min.insync.replicas": "2"})
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.in_sync.update_assignment_and_isr([0, 7], [0])
    partition.is_reassigning = True
    found = scraped.scrape()
    for name in ("underreplicatedpartitions", "underminisrpartitioncount", "reassigningpartitions"):
        assert found.value(f"{MANAGER}{name}") == 1, name
    assert found.value("kafka_cluster_partition_underreplicated", topic="t", partition="0") == 1
    assert found.value("kafka_topic_partition_under_replicated_partition", topic="t", partition="0") == 1


def test_replicas_that_a_reassignment_adds_are_not_missing(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t")
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.in_sync.update_assignment_and_isr([0, 7, 8], [0])
    partition.adding_replicas = [7, 8]
    found = scraped.scrape()
    assert found.value(f"{MANAGER}underreplicatedpartitions") == 0
    assert found.value("kafka_cluster_partition_underreplicated", topic="t", partition="0") == 0
    assert found.value("kafka_cluster_partition_replicascount", topic="t", partition="0") == 1
    assert found.value("kafka_topic_partition_under_replicated_partition", topic="t", partition="0") == 1
    partition.adding_replicas = [8]
    found = scraped.scrape()
    assert found.value(f"{MANAGER}underreplicatedpartitions") == 1
    assert found.value("kafka_cluster_partition_replicascount", topic="t", partition="0") == 2


def test_changes_of_an_isr_are_counted_when_the_controller_has_answered(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    monkeypatch.setattr(type(partition.environment.alter_partition), "submit", lambda manager, item: None)
    in_sync = partition.in_sync
    in_sync.update_assignment_and_isr([0, 7], [0, 7])
    for answer in (ErrorCode.INELIGIBLE_REPLICA, LeaderAndIsr(leader=0, isr=(0,), leader_epoch=0, partition_epoch=9)):
        in_sync.maybe_shrink_isr()
        in_sync._answered(in_sync.state, answer)  # type: ignore[arg-type]
    found = scraped.scrape()
    assert found.value(f"{MANAGER}isrshrinks_total") == 1
    assert found.value(f"{MANAGER}isrexpands_total") == 0
    assert found.value(f"{MANAGER}failedisrupdates_total") == 1


def test_a_transaction_is_late_when_its_producer_could_not_have_it_open_any_more(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t")
    name = f"{MANAGER}partitionswithlatetransactionscount"
    produce(broker, "t")
    log = broker.services.replica_manager.partition(TopicPartition("t", 0)).log
    assert log is not None
    now_ms = broker.services.clock.time_ms()
    limit_ms = broker.services.config.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    for age_ms, late in ((limit_ms, 0), (limit_ms + 1, 1)):
        entry = ProducerStateEntry(5, 0, 0, now_ms - age_ms, 0)
        log.state.producers.load_entries([entry])
        assert scraped.scrape().value(name) == late


def test_partitions_that_are_not_followed_because_of_an_error(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    name = "kafka_server_replicafetchermanager_failedpartitionscount"
    assert scraped.scrape().value(name, clientId="Replica") == 0
    broker.services.replica_manager.partitions.failed_partitions |= {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert scraped.scrape().value(name, clientId="Replica") == 2
