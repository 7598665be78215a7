"""What clients do in a broker's day: the requests of the scenarios, and waiting until a moment of virtual time.

All times are milliseconds since the broker has served. Scenarios are coroutines that run beside each other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import read_offsets
from tests.support.wire.requests import build

if TYPE_CHECKING:
    from odradek.storage.log.unified_log import UnifiedLog
    from tests.support.simulation.lone_broker import LoneBroker, Peer

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

MARGIN_MS: Final = 2 * SECOND
"""How late a job may be: the pools of a simulation take up to 0.3 s for a piece of work, and jobs have several."""

CREATE_TOPICS_VERSION: Final = 7
PRODUCE_VERSION: Final = 9


class Day:
    """`admin` is a connection that asks often enough not to be idle."""

    def __init__(self, broker: LoneBroker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.began_ms = broker.now_ms

    @property
    def now_ms(self) -> int:
        return self.broker.now_ms - self.began_ms

    async def until(self, time_ms: int) -> None:
        """Wait for a moment of the day."""
        assert time_ms >= self.now_ms, f"{time_ms} is over at {self.now_ms}"
        await asyncio.sleep((time_ms - self.now_ms) / 1000)

    async def happens_at(
        self, time_ms: int, has_happened: Callable[[], Awaitable[bool]], margin_ms: int = MARGIN_MS
    ) -> None:
        """Wait until just after this moment: it has not happened just before, and has happened then."""
        await self.until(time_ms - SECOND)
        assert not await has_happened(), f"happened before {time_ms} ms"
        await self.until(time_ms + margin_ms)
        assert await has_happened(), f"has not happened at {time_ms} ms"

    @staticmethod
    def next_round(after_ms: int, interval_ms: int, first_ms: int = 0) -> int:
        """The first round of periodic work at or after a moment."""
        return first_ms + max(0, -(-(after_ms - first_ms) // interval_ms)) * interval_ms

    def waiting(self) -> Counter[str]:
        """What the broker's timer and its event loop have to do later, by name."""
        wheels = self.broker.server.timer.inspect()
        tasks = [task for wheel in wheels for bucket in wheel.buckets.values() for task in bucket]
        names = [_name(getattr(task, "_callback", task)) for task in tasks]
        return Counter(names + [_name(task.get_coro()) for task in asyncio.all_tasks()])

    async def ask(self, api: ApiKey, version: int, peer: Peer | None = None, **fields: object) -> Any:
        """The answer to one request, on a connection of its own unless one is given."""
        connection = self.broker.connect() if peer is None else peer
        try:
            return await connection.send(build(api, **fields), version)
        finally:
            if peer is None:
                connection.close()

    async def set_quota(self, client_id: str, bytes_a_second: int) -> None:
        """Of Produce requests."""
        entry = {
            "entity": [{"entity_type": "client-id", "entity_name": client_id}],
            "ops": [{"key": "producer_byte_rate", "value": float(bytes_a_second), "remove": False}],
        }
        answer = await self.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)
        assert [found.error_code for found in answer.entries] == [0], answer

    async def produce_to_be_throttled(self, topic: str, peer: Peer, client_id: str, size: int) -> tuple[int, int]:
        """A record of that size with acks=all: how long the answer took, and the throttle time in it."""
        records = build_batch([SimpleRecord(self.broker.wall_ms, None, bytes(size))])
        data = [{"name": topic, "partition_data": [{"index": 0, "records": memoryview(records)}]}]
        request = build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=data)
        asked_ms = self.now_ms
        answer = await peer.call(request, ProduceResponse, PRODUCE_VERSION, client_id=client_id)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        return self.now_ms - asked_ms, answer.throttle_time_ms

    # Topics and their logs

    async def create_topic(self, name: str, **configs: int | str) -> None:
        topic = {
            "name": name,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()],
        }
        answer = await self.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, topics=[topic], timeout_ms=30_000)
        assert [found.error_code for found in answer.topics] == [0], answer

    async def delete_topics(self, *names: str) -> None:
        topics = [{"name": name} for name in names]
        answer = await self.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=30_000)
        assert {found.error_code for found in answer.responses} == {0}, answer

    async def produce(
        self,
        topic: str,
        value: bytes | None = b"value",
        key: bytes | None = b"key",
        *,
        transactional_id: str | None = None,
        **producer: Any,
    ) -> int:
        """One record with acks=all; its offset."""
        records = build_batch([SimpleRecord(self.broker.wall_ms, key, value)], **producer)
        partition = {"index": 0, "records": memoryview(records)}
        answer = await self.ask(
            ApiKey.PRODUCE,
            PRODUCE_VERSION,
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[{"name": topic, "partition_data": [partition]}],
        )
        ((found,),) = [topic.partition_responses for topic in answer.responses]
        assert found.error_code == 0, found
        return int(found.base_offset)

    def log(self, topic: str, partition: int = 0) -> UnifiedLog:
        hosted = self.broker.services.replica_manager.hosted(TopicPartition(topic, partition))
        assert hosted is not None
        assert hosted.log is not None
        return hosted.log

    def files(self, topic: str) -> list[str]:
        return sorted(path.name for path in (self.directory / f"{topic}-0").iterdir())

    def checkpoint(self, name: str, topic: str) -> int | None:
        """The offset of the topic in a checkpoint file."""
        return read_offsets(str(self.directory / name)).get(TopicPartition(topic, 0))

    # Groups

    async def join(self, group: str, peer: Peer, *, session_timeout_ms: int, rebalance_timeout_ms: int) -> Any:
        """Join as a member that the group does not know, as a Java client does: the first answer brings the id."""
        fields = {
            "group_id": group,
            "session_timeout_ms": session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms,
            "protocol_type": "test",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        told = await self.ask(ApiKey.JOIN_GROUP, 6, peer, member_id="", **fields)
        return await self.ask(ApiKey.JOIN_GROUP, 6, peer, member_id=told.member_id, **fields)

    async def sync(self, group: str, joined: Any, peer: Peer) -> None:
        assignments = [{"member_id": member.member_id, "assignment": b"all"} for member in joined.members]
        answer = await self.ask(
            ApiKey.SYNC_GROUP,
            4,
            peer,
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=assignments,
        )
        assert answer.error_code == 0

    async def commit(
        self, group: str, topic: str, offset: int, *, member: Mapping[str, object] | None = None, retention_ms: int = -1
    ) -> None:
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        answer = await self.ask(
            ApiKey.OFFSET_COMMIT,
            4,  # the last version with a retention time of its own
            group_id=group,
            topics=[{"name": topic, "partitions": partitions}],
            retention_time_ms=retention_ms,
            **(member or {}),
        )
        assert answer.topics[0].partitions[0].error_code == 0, answer

    async def committed(self, group: str, topic: str) -> int:
        topics = [{"name": topic, "partition_indexes": [0]}]
        answer = await self.ask(ApiKey.OFFSET_FETCH, 5, group_id=group, topics=topics)
        return int(answer.topics[0].partitions[0].committed_offset)

    async def group_state(self, group: str) -> str:
        answer = await self.ask(ApiKey.DESCRIBE_GROUPS, 4, groups=[group])
        return str(answer.groups[0].group_state)


def _name(work: object) -> str:
    return getattr(work, "__qualname__", "") or repr(work)
