from __future__ import annotations

import pytest

from odradek.coordinator.group.state.group_states import GroupLifecycle, GroupState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker

MANAGER = "kafka_coordinator_group_groupmetadatamanager_"


def test_groups_are_counted_by_state(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    groups = broker.services.group_coordinator._groups
    for number, state in enumerate((GroupState.STABLE, GroupState.STABLE, GroupState.PREPARING_REBALANCE)):
        groups.get_or_create(f"g{number}").lifecycle = GroupLifecycle(broker.clock, state)
    groups.expired_offsets, groups.offset_commits = 4, 5
    broker.services.group_coordinator._offsets.deleted_offsets = 6
    found = scraped.scrape()
    assert found.value(f"{MANAGER}numgroups") == 3
    assert found.value(f"{MANAGER}numgroupsstable") == 2
    assert found.value(f"{MANAGER}numgroupspreparingrebalance") == 1
    assert found.value(f"{MANAGER}numgroupscompletingrebalance") == found.value(f"{MANAGER}numgroupsempty") == 0
    assert found.value("kafka_server_group_coordinator_metrics_offset_expiration_count") == 4
    assert found.value("kafka_server_group_coordinator_metrics_offset_commit_count") == 5
    assert found.value("kafka_server_group_coordinator_metrics_offset_deletion_count") == 6


@pytest.mark.parametrize("coordinator", ["group", "transaction"])
def test_the_times_of_loads(scraped: ScrapedBroker, broker: InProcessBroker, coordinator: str) -> None:
    name = f"kafka_server_{coordinator}_coordinator_metrics_partition_load_time_"
    found = scraped.scrape()
    assert not found.labels_of(f"{name}max"), "nothing was loaded since metrics are on"
    services = broker.services
    states = services.transaction_coordinator.states
    times = (services.group_coordinator if coordinator == "group" else states).ownership.load_times
    assert times is not None
    for load_ms in (10, 20):
        times.loaded(times.now_ms() - load_ms)
    found = scraped.scrape()
    assert (found.value(f"{name}max"), found.value(f"{name}avg")) == (20, 15)


def test_verifications_of_transactions(scraped: ScrapedBroker, broker: InProcessBroker) -> None:
    name = "kafka_server_addpartitionstotxnmanager_verification"
    stats = broker.services.transaction_verification.manager.stats
    assert stats is not None
    answered = stats.counted(lambda errors: None)
    broker.advance(25)
    answered({TopicPartition("t", 0): ErrorCode.INVALID_TXN_STATE})
    found = scraped.scrape()
    assert found.value(f"{name}failurerate_count") == found.value(f"{name}timems_count") == 1
    assert found.value(f"{name}timems", quantile="0.99") == 25
