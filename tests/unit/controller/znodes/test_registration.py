from __future__ import annotations

import pytest

from odradek.controller.model.broker_info import BrokerInfo
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import (
    RegistrationRefused,
    check_end_points_are_free,
    create_base_nodes,
    create_or_get_cluster_id,
    generate_broker_id,
    register_broker,
    update_broker,
)
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.clusters.controller_states import broker

CLOCK = ManualClock(1000)


async def clients(number: int) -> tuple[TreeDatabase, list[MetadataClient]]:
    database = await TreeDatabase.open(":memory:", CLOCK)
    opened = [MetadataClient(await database.connect()) for _ in range(number)]
    await create_base_nodes(opened[0])
    return database, opened


@async_test
async def test_base_nodes_are_created_and_left_alone() -> None:
    database, (client,) = await clients(1)
    before = await client.get("/brokers/topics")
    await create_base_nodes(client)
    assert await client.get("/brokers/topics") == before
    assert before is not None
    assert before.data is None
    for path in znodes.PERSISTENT_PATHS:
        assert await client.exists(path)
    assert not await client.exists("/config/client-metrics")
    await database.close()


@async_test
async def test_the_first_broker_names_the_cluster() -> None:
    database, (one, two) = await clients(2)
    assert await create_or_get_cluster_id(one, lambda: "first") == "first"
    assert await create_or_get_cluster_id(two, lambda: "second") == "first"
    await database.close()


@async_test
async def test_generated_ids_begin_above_the_reserved_ones() -> None:
    database, (one, two) = await clients(2)
    assert [await generate_broker_id(client) for client in (one, two, one)] == [1001, 1002, 1003]
    assert await generate_broker_id(two, 50) == 54
    await database.close()


@async_test
async def test_the_broker_epoch_is_the_transaction_that_registered() -> None:
    database, (one, two) = await clients(2)
    first = await register_broker(one, BrokerInfo(broker=broker(1)), CLOCK)
    second = await register_broker(two, BrokerInfo(broker=broker(2)), CLOCK)
    assert second > first
    assert await one.brokers_and_epochs() == {broker(1): first, broker(2): second}
    node = await one.get(znodes.broker_id_path(1))
    assert node is not None
    assert (node.stat.version, node.stat.ephemeral_owner) == (1, one.tree.session_id)
    # Registering twice in one session changes nothing.
    assert await register_broker(one, BrokerInfo(broker=broker(1)), CLOCK) == first
    await database.close()


@async_test
async def test_another_brokers_id_is_taken() -> None:
    database, (one, two) = await clients(2)
    await register_broker(one, BrokerInfo(broker=broker(1)), CLOCK)
    with pytest.raises(RegistrationRefused, match="already registered on the path /brokers/ids/1"):
        await register_broker(two, BrokerInfo(broker=broker(1)), CLOCK)
    await database.close()


@async_test
async def test_the_node_of_ones_previous_session_is_replaced() -> None:
    database, (old, new) = await clients(2)
    first = await register_broker(old, BrokerInfo(broker=broker(1)), CLOCK)
    second = await register_broker(new, BrokerInfo(broker=broker(1)), CLOCK, old.tree.session_id)
    assert second > first
    await database.close()


@async_test
async def test_an_address_belongs_to_one_broker() -> None:
    database, (client,) = await clients(1)
    await register_broker(client, BrokerInfo(broker=broker(1)), CLOCK)
    await check_end_points_are_free(client, BrokerInfo(broker=broker(1)))
    await check_end_points_are_free(client, BrokerInfo(broker=broker(2)))
    with pytest.raises(RegistrationRefused, match=r"host1:9092 .* registered by broker 1"):
        await check_end_points_are_free(client, BrokerInfo(broker=broker(1)._replace(id=2)))
    await database.close()


@async_test
async def test_new_listeners_keep_the_epoch() -> None:
    database, (client,) = await clients(1)
    epoch = await register_broker(client, BrokerInfo(broker=broker(1)), CLOCK)
    moved = broker(1)._replace(end_points=broker(9).end_points)
    await update_broker(client, BrokerInfo(broker=moved), CLOCK)
    assert await client.brokers_and_epochs() == {moved: epoch}
    await database.close()


@async_test
async def test_new_listeners_before_the_registration_wait_for_it() -> None:
    database, (client,) = await clients(1)
    await update_broker(client, BrokerInfo(broker=broker(1)), CLOCK)
    assert not await client.exists(znodes.broker_id_path(1))
    await database.close()
