from __future__ import annotations

import random
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.machine import ClosableIoPool, ClosableWorkerPool, Machine
from odradek.broker.security.tokens.token_setup import make_token_manager
from odradek.controller.model.delegation_token import Principal
from odradek.protocol.codec.primitives import uuid_from_text
from odradek.storage.disk.ports import InlineIoPool
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster

ALICE = Principal("User", "alice")


@async_test
async def test_the_settings_of_the_broker_hold() -> None:
    config = BrokerConfig({"delegation.token.max.lifetime.ms": "50", "delegation.token.expiry.time.ms": "40"})
    machine = Machine(
        io_pool=cast("ClosableIoPool", InlineIoPool()), workers=cast("ClosableWorkerPool", None), rng=random.Random(1)
    )
    async with controller_cluster() as cluster:
        await cluster.start(0)
        manager = make_token_manager(config, cluster.client, cluster.clock, machine, "key")
        await manager.startup()
        info = (await manager.create_token(ALICE, ALICE, (), -1)).info
        await manager.shutdown()
    assert (info.max_ms - info.issue_ms, info.expiry_ms - info.issue_ms) == (50, 40)
    assert len(uuid_from_text(info.token_id)) == 16


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({}, None),
        ({"secret": ""}, None),
        ({"secret": "a"}, "a"),
        ({"master": "b"}, "b"),
        ({"secret": "a", "master": "b"}, "a"),
        ({"secret": "", "master": "b"}, None),
    ],
)
def test_the_secret_key_and_its_former_name(settings: dict[str, str], secret: str | None) -> None:
    config = BrokerConfig({f"delegation.token.{name}.key": value for name, value in settings.items()})
    assert config.delegation_token_secret == secret
