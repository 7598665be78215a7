from __future__ import annotations

from odradek.coordinator.group.state.group_states import GroupLifecycle, GroupState
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker

MANAGER = "kafka_coordinator_group_groupmetadatamanager_"


def test_groups_are_counted_by_state(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    groups = broker.services.group_coordinator._groups
    for number, state in enumerate((GroupState.STABLE, GroupState.STABLE, GroupState.PREPARING_REBALANCE)):
        groups.get_or_create(f"g{number}").lifecycle = GroupLifecycle(broker.clock, state)
    groups.expired_offsets = 4
    found = scraped.scrape()
    assert found.value(f"{MANAGER}numgroups") == 3
    assert found.value(f"{MANAGER}numgroupsstable") == 2
    assert found.value(f"{MANAGER}numgroupspreparingrebalance") == 1
    assert found.value(f"{MANAGER}numgroupscompletingrebalance") == found.value(f"{MANAGER}numgroupsempty") == 0
    assert found.value("kafka_server_group_coordinator_metrics_offset_expiration_count") == 4
