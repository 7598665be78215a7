"""The operator of a simulated cluster: moves replicas, deletes a topic and creates it again, deposes controllers.

It sends requests to brokers, as tools do, except that it deposes a controller by deleting its node in the tree. A
request that is refused or not answered is given up; one that has been accepted has to be carried through, by any
controller. At the end every replica is moved back to where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from odradek.protocol.messages.create_topics import CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.simulation.load import Client
from tests.support.wire.requests import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.codec.schema import Request, Response
    from tests.support.simulation.environment.network import Network
    from tests.support.simulation.environment.tree_server import TreeServer
    from tests.support.simulation.oracle import Oracle

BRIEF: Final = TopicPartition("brief", 0)
"""The topic that is deleted and created again."""
PACE_MS: Final = 3_000
TIMEOUT_MS: Final = 4_000
LATE_MS: Final = 1_000
"""After this time no earlier request can still be under way."""


class Operator(Client):
    """`is_idle` when every replica of `partitions` has been sent back to all brokers."""

    def __init__(
        self,
        name: str,
        network: Network,
        brokers: Sequence[int],
        oracle: Oracle,
        rng: Random,
        *,
        partitions: Sequence[TopicPartition],
        tree: TreeServer,
        note: Callable[[str], None],
    ) -> None:
        super().__init__(name, network, brokers, oracle, rng)
        self.is_idle = False
        self._partitions = partitions
        self._tree = tree
        self._note = note

    async def run(self) -> None:
        kinds = (self._reassign, self._reassign, self._cancel, self._create, self._delete, self._depose)
        while not self.is_stopping:
            await self.pause(PACE_MS)
            await self.rng.choice(kinds)()
        await asyncio.sleep(LATE_MS / 1000)
        while not all([await self._move(partition, list(self.brokers)) for partition in self._partitions]):
            await self.pause(500)
        self.is_idle = True

    async def _reassign(self) -> None:
        await self._move(self.rng.choice(self._partitions), self.rng.sample(self.brokers, self.rng.choice((2, 3))))

    async def reorder(self) -> None:
        """The replicas stay the same: only the leader epoch changes."""
        await self._move(self.rng.choice(self._partitions), self.rng.sample(self.brokers, len(self.brokers)))

    async def _cancel(self) -> None:
        await self._move(self.rng.choice(self._partitions), None)

    async def _move(self, partition: TopicPartition, replicas: list[int] | None) -> bool:
        """Whether it was accepted."""
        parts = [{"partition_index": partition.partition, "replicas": replicas}]
        topics = [{"name": partition.topic, "partitions": parts}]
        request = build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, timeout_ms=TIMEOUT_MS, topics=topics)
        answer = await self._ask_controller(
            f"{partition} to {replicas}", request, AlterPartitionReassignmentsResponse, 0
        )
        return answer is not None and not answer.error_code and not answer.responses[0].partitions[0].error_code

    async def _create(self) -> None:
        topic = {"name": BRIEF.topic, "num_partitions": 1, "replication_factor": len(self.brokers)}
        request = build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=TIMEOUT_MS)
        await self._ask_controller(f"create {BRIEF.topic}", request, CreateTopicsResponse, 7)

    async def _delete(self) -> None:
        request = build(ApiKey.DELETE_TOPICS, topics=[{"name": BRIEF.topic}], timeout_ms=TIMEOUT_MS)
        await self._ask_controller(f"delete {BRIEF.topic}", request, DeleteTopicsResponse, 6)

    async def _depose(self) -> None:
        """Depose the controller in the middle of its work. It hears of that late, maybe after the next election."""
        moving = asyncio.get_running_loop().create_task(self._reassign())
        await self.pause(20)
        client = self._tree.owner(znodes.CONTROLLER)
        if client is not None:
            self._note("the controller is deposed")
            client.lag(self.rng.choice((0, 500, 2_000)))
            self._tree.delete(znodes.CONTROLLER)
        await moving

    async def _ask_controller(self, what: str, request: Request, answer: type[Response], version: int) -> Any:
        found: Any = await self.ask(self.rng.choice(self.brokers), MetadataRequest(topics=[]), MetadataResponse, 12)
        if found is None or found.controller_id < 0:
            return None
        self._note(f"{self.name} asks broker{found.controller_id}: {what}")
        return await self.ask(found.controller_id, request, answer, version, TIMEOUT_MS + 1_000)
