from __future__ import annotations

from types import SimpleNamespace

import pytest

from odradek.testing.cluster.cluster_questions import ClusterView, cluster_view, wait_for_view
from odradek.testing.observations.waits import Change, Waits
from tests.support.async_test import async_test


def _broker(**state: object) -> SimpleNamespace:
    partition = SimpleNamespace(leader=1, replicas=[1, 2], isr=[2, 1])
    snapshot = SimpleNamespace(nodes={2: {}, 1: {}}, controller_id=2, partitions={"t": {0: partition}})
    snapshot.__dict__.update(state)
    cache = SimpleNamespace(snapshot=snapshot)
    return SimpleNamespace(services=SimpleNamespace(metadata_cache=cache), observations=SimpleNamespace(waits=Waits()))


@async_test
async def test_a_view() -> None:
    expected = ClusterView(brokers=(1, 2), controller=2, leader=1, replicas=(1, 2), in_sync=(2, 1))
    assert await cluster_view(_broker(), topic="t") == expected  # type: ignore[arg-type]
    assert (await cluster_view(_broker(), topic="none")).leader is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "is_so"),
    [
        ({}, True),
        ({"brokers": (1, 2)}, True),
        ({"brokers": (1, 2, 3)}, False),
        ({"brokers": (1,)}, False),
        ({"brokers": (1,), "leaving": (2, 3)}, True),
        ({"brokers": (1, 2), "leaving": (3,)}, True),
        ({"brokers": (1, 3), "leaving": (2,)}, False),
        ({"not_controller": 1}, True),
        ({"not_controller": 2}, False),
        ({"topic": "t", "leader": 1}, True),
        ({"topic": "t", "leader": 2}, False),
        ({"topic": "t", "not_leader": 2}, True),
        ({"topic": "t", "not_leader": 1}, False),
        ({"topic": "none", "not_leader": 1}, False),
        ({"topic": "t", "in_sync": (1, 2)}, True),
        ({"topic": "t", "in_sync": (1,)}, False),
    ],
)
@async_test
async def test_conditions(wanted: dict[str, object], is_so: bool) -> None:
    found, _ = await wait_for_view(_broker(), timeout_s=0, **wanted)  # type: ignore[arg-type]
    assert found is is_so


@async_test
async def test_a_controller_that_is_not_alive_is_none() -> None:
    broker = _broker(controller_id=7)
    assert not (await wait_for_view(broker, timeout_s=0))[0]  # type: ignore[arg-type]


@async_test
async def test_a_change_of_metadata_ends_the_wait() -> None:
    import asyncio

    broker = _broker(controller_id=None)
    waiting = asyncio.create_task(wait_for_view(broker, timeout_s=10))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    broker.services.metadata_cache.snapshot.controller_id = 1
    broker.observations.waits.announce(Change.METADATA)
    found, view = await waiting
    assert found
    assert view.controller == 1
