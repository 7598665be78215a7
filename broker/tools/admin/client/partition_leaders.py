"""Requests about partitions, sent to their leaders: many partitions in a request, all leaders at once.

An error that passes, such as that of a leader that moves, is tried again until `default.api.timeout.ms` has passed.

Kafka: AdminApiDriver, PartitionLeaderStrategy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.admin.client.coordinators import Answered
from odradek.broker.tools.command.socket_loop import gather
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

AnsweredT = TypeVar("AnsweredT", bound=Answered)
Ask = Callable[[int, Sequence[TopicPartition]], Awaitable[Mapping[TopicPartition, AnsweredT]]]
"""Asks a broker about partitions; the answer by partition."""

_TRIED_AGAIN: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


class PartitionLeaders:
    """Sends requests to leaders, and caches which broker leads a partition."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._leaders: dict[TopicPartition, int] = {}

    async def ask(
        self, partitions: Iterable[TopicPartition], ask: Ask[AnsweredT], failed: Callable[[int], AnsweredT]
    ) -> dict[TopicPartition, AnsweredT]:
        """The answer about each partition, in the given order; `failed` makes one from an error code."""
        wanted = list(dict.fromkeys(partitions))
        answers: dict[TopicPartition, AnsweredT] = {}
        pending = wanted
        if not pending:
            return answers
        async for _ in self._client.attempts():
            errors = await self._find_leaders(pending)
            answers |= {tp: failed(error) for tp, error in errors.items()}
            by_leader: dict[int, list[TopicPartition]] = {}
            for tp in pending:
                if tp not in errors:
                    by_leader.setdefault(self._leaders[tp], []).append(tp)
            asked = [self._ask_leader(ask, failed, leader, those) for leader, those in by_leader.items()]
            for found in await gather(asked):
                answers.update(found)
            pending = [tp for tp in pending if answers[tp].error_code in _TRIED_AGAIN]
            if not pending:
                break
            for tp in pending:
                self._leaders.pop(tp, None)
        return {tp: answers[tp] for tp in wanted}

    async def _find_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The errors of partitions whose leaders are not known."""
        unknown = [tp for tp in partitions if tp not in self._leaders]
        if not unknown:
            return {}
        topic_errors: dict[str, int] = {}
        without_leader: set[TopicPartition] = set()
        for topic in (await self._client.metadata(sorted({tp.topic for tp in unknown}))).topics:
            topic_errors[topic.name or ""] = topic.error_code
            for partition in topic.partitions:
                tp = TopicPartition(topic.name or "", partition.partition_index)
                if partition.leader_id < 0:
                    without_leader.add(tp)
                else:
                    self._leaders[tp] = partition.leader_id
        return {
            tp: ErrorCode.LEADER_NOT_AVAILABLE
            if tp in without_leader
            else topic_errors.get(tp.topic) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for tp in unknown
            if tp not in self._leaders
        }

    async def _ask_leader(
        self,
        ask: Ask[AnsweredT],
        failed: Callable[[int], AnsweredT],
        leader: int,
        partitions: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, AnsweredT]:
        try:
            return await ask(leader, partitions)
        except VersionMismatch:
            raise
        except OSError:
            return {tp: failed(ErrorCode.LEADER_NOT_AVAILABLE) for tp in partitions}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic, as most requests have them."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
