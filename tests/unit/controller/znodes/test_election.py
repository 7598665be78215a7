from __future__ import annotations

import asyncio

import pytest

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import ConnectionLoss, Multi, Operation, SetData
from odradek.controller.znodes import znodes
from odradek.controller.znodes.election import Elected, delete_controller, register_controller
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

CLOCK = ManualClock(1000)


@async_test
async def test_epochs_grow_with_every_election() -> None:
    database = await TreeDatabase.open(":memory:", CLOCK)
    for epoch in (1, 2, 3):
        tree = await database.connect()
        assert await register_controller(MetadataClient(tree), 7, CLOCK) == Elected(epoch, epoch)
        await tree.close()
    await database.close()


@async_test
async def test_one_of_many_wins() -> None:
    database = await TreeDatabase.open(":memory:", CLOCK)
    clients = [MetadataClient(await database.connect()) for _ in range(5)]
    results = await asyncio.gather(
        *(register_controller(client, i, CLOCK) for i, client in enumerate(clients)), return_exceptions=True
    )
    winners = [i for i, result in enumerate(results) if result == Elected(1, 1)]
    assert len(winners) == 1
    assert sum(isinstance(result, ControllerMoved) for result in results) == 4
    assert await clients[0].controller() == (winners[0], -1, 0)
    await database.close()


class _LossyTree:
    """Carries a multi out and loses the answer."""

    def __init__(self, client: MetadataClient, *, carries_out: bool) -> None:
        self._tree = client.tree
        self._carries_out = carries_out

    async def run(self, operation: Operation[object]) -> object:
        if isinstance(operation, Multi):
            if self._carries_out:
                await self._tree.run(operation)
            raise ConnectionLoss
        return await self._tree.run(operation)


@async_test
async def test_a_winner_whose_response_was_lost_is_the_controller() -> None:
    database = await TreeDatabase.open(":memory:", CLOCK)
    client = MetadataClient(await database.connect())
    assert await register_controller(MetadataClient(_LossyTree(client, carries_out=True)), 7, CLOCK) == Elected(1, 1)
    await database.close()


@async_test
async def test_a_loser_whose_response_was_lost_is_not_the_controller() -> None:
    database = await TreeDatabase.open(":memory:", CLOCK)
    client = MetadataClient(await database.connect())
    with pytest.raises(ControllerMoved):
        await register_controller(MetadataClient(_LossyTree(client, carries_out=False)), 7, CLOCK)
    await database.close()


@async_test
async def test_only_the_current_controller_can_resign() -> None:
    database = await TreeDatabase.open(":memory:", CLOCK)
    client = MetadataClient(await database.connect())
    elected = await register_controller(client, 7, CLOCK)
    with pytest.raises(ControllerMoved):
        await delete_controller(client, elected.epoch_zk_version - 1)
    await delete_controller(client, elected.epoch_zk_version)
    assert await client.controller() is None
    await client.tree.run(SetData(znodes.CONTROLLER_EPOCH, b"41"))
    assert (await register_controller(client, 7, CLOCK)).epoch == 42
    await database.close()
