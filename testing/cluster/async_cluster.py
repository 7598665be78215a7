"""`AsyncCluster`: `Cluster` for coroutines. Its methods run in threads and do not hold the test's loop up."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Self

from odradek.testing.async_broker import AsyncBroker
from odradek.testing.cluster.cluster import DEFAULT_TIMEOUT_S, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from odradek.testing.cluster.metadata_service import MetadataService
    from odradek.testing.node.settings import SettingValue


class AsyncCluster:
    """The methods of `Cluster`, to be awaited; what is a property there and asks a broker is a method here."""

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, SettingValue] | None = None,
        *,
        own_process: bool = True,
        **configs: SettingValue,
    ) -> None:
        """As `Cluster`."""
        self._cluster = Cluster(brokers, config, own_process=own_process, **configs)

    async def start(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self._cluster.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})  # the thread goes on, and makes processes
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        await asyncio.to_thread(self._cluster.stop)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def brokers(self) -> Mapping[int, AsyncBroker]:
        """The brokers by id, also those that do not run; for assertions and faults."""
        return {broker_id: AsyncBroker.of(broker) for broker_id, broker in self._cluster.brokers.items()}

    @property
    def zookeeper(self) -> MetadataService:
        """The metadata service; its methods block for a few milliseconds."""
        return self._cluster.zookeeper

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    async def controller(self) -> int:
        return await asyncio.to_thread(lambda: self._cluster.controller)

    async def leader(self, topic: str, partition: int = 0) -> int:
        return await asyncio.to_thread(self._cluster.leader, topic, partition)

    async def in_sync_replicas(self, topic: str, partition: int = 0) -> set[int]:
        return await asyncio.to_thread(self._cluster.in_sync_replicas, topic, partition)

    async def stop_broker(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.stop_broker, broker_id)

    async def start_broker(self, broker_id: int) -> AsyncBroker:
        return AsyncBroker.of(await asyncio.to_thread(self._cluster.start_broker, broker_id))

    async def restart(self, broker_id: int) -> AsyncBroker:
        return AsyncBroker.of(await asyncio.to_thread(self._cluster.restart, broker_id))

    async def kill(self, broker_id: int, *, notice: bool = True) -> None:
        await asyncio.to_thread(partial(self._cluster.kill, broker_id, notice=notice))

    async def pause(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.pause, broker_id)

    async def resume(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.resume, broker_id)

    async def expire_session(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.expire_session, broker_id)

    async def add_broker(self) -> AsyncBroker:
        return AsyncBroker.of(await asyncio.to_thread(self._cluster.add_broker))

    async def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        await asyncio.to_thread(partial(self._cluster.move_leader, topic, partition, to=to))

    async def partition(self, *groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> None:
        await asyncio.to_thread(partial(self._cluster.partition, *groups, without_zookeeper=without_zookeeper))

    async def heal(self) -> None:
        await asyncio.to_thread(self._cluster.heal)

    async def wait_until_settled(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        await asyncio.to_thread(self._cluster.wait_until_settled, timeout_s)

    async def wait_for_brokers(self, brokers: Iterable[int], timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        await asyncio.to_thread(self._cluster.wait_for_brokers, brokers, timeout_s)

    async def wait_for_controller(self, *, other_than: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> int:
        return await asyncio.to_thread(
            partial(self._cluster.wait_for_controller, other_than=other_than, timeout_s=timeout_s)
        )

    async def wait_for_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        leader: int | None = None,
        other_than: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> int:
        wait = partial(self._cluster.wait_for_leader, topic, partition)
        return await asyncio.to_thread(partial(wait, leader=leader, other_than=other_than, timeout_s=timeout_s))

    async def wait_for_in_sync_replicas(
        self, topic: str, partition: int = 0, *, replicas: Iterable[int], timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        wait = partial(self._cluster.wait_for_in_sync_replicas, topic, partition)
        await asyncio.to_thread(partial(wait, replicas=replicas, timeout_s=timeout_s))
