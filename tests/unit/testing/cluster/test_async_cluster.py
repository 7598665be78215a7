from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from odradek.testing import AsyncCluster, Cluster
from odradek.testing.errors import WaitTimedOut
from tests.support.async_test import async_test


@async_test
async def test_a_cluster_is_awaited() -> None:
    async with AsyncCluster(2, own_process=False) as cluster:
        assert await cluster.controller() in (0, 1)
        assert len(cluster.bootstrap_servers.split(",")) == 2
        assert set(cluster.brokers) == {0, 1}
        await cluster.stop_broker(1)
        await cluster.wait_for_brokers([0])
        assert await cluster.controller() == 0
        back = await cluster.start_broker(1)
        assert back.bootstrap_servers in cluster.bootstrap_servers
        await cluster.restart(1)
        await cluster.add_broker()
        await cluster.wait_until_settled()
        await cluster.partition([0], [1, 2])
        await cluster.heal()
        await cluster.expire_session(1)
        for action in (cluster.kill, cluster.pause):
            with pytest.raises(RuntimeError, match="own_process"):
                await action(0)
        await cluster.resume(0)
        with pytest.raises(ValueError, match="does not exist"):
            await cluster.move_leader("none", to=0)
        for wait in (
            cluster.wait_for_leader("none", leader=0, timeout_s=0.01),
            cluster.wait_for_in_sync_replicas("none", replicas=[0], timeout_s=0.01),
            cluster.wait_for_controller(other_than=await cluster.controller(), timeout_s=0.01),
        ):
            with pytest.raises(WaitTimedOut):
                await wait
        assert await cluster.in_sync_replicas("none") == set()
        assert cluster.zookeeper.is_running


def test_both_facades_have_the_same_methods() -> None:
    def public(kind: type) -> dict[str, object]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("_")}

    blocking, awaited = public(Cluster), public(AsyncCluster)
    assert set(blocking) == set(awaited)
    for name, value in blocking.items():
        if inspect.isfunction(value):
            assert list(inspect.signature(value).parameters) == list(inspect.signature(awaited[name]).parameters)  # type: ignore[arg-type]
            assert inspect.iscoroutinefunction(awaited[name])


def test_a_start_that_is_cancelled_leaves_no_broker() -> None:
    cluster = AsyncCluster(1, own_process=False)

    async def test() -> None:
        before = set(threading.enumerate())
        starting = asyncio.create_task(cluster.start())
        while set(threading.enumerate()) == before:
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(asyncio.wait_for(test(), 60))  # its end waits for the threads of `asyncio.to_thread`
    left = dict(cluster.brokers)
    asyncio.run(cluster.stop())
    assert not left
