from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.client.partition_leaders import PartitionLeaders, by_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, no_wait, outcome, topic

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


class Answer(NamedTuple):
    error_code: int
    leader: int = -1


class Asked:
    """Answers with the next of the errors."""

    def __init__(self, *errors: ErrorCode | OSError) -> None:
        self.errors = list(errors)

    async def ask(self, leader: int, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if isinstance(error, OSError):
            raise error
        return {tp: Answer(error, leader) for tp in partitions}

    async def all(self, client: AdminClient) -> dict[TopicPartition, Answer]:
        return await PartitionLeaders(client).ask([T1, T0, GONE], self.ask, Answer)


def test_leaders_are_asked_and_the_order_is_kept(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1, 2], [3, 1]))
    (found,) = outcome(Asked().all)
    assert list(found.items()) == [
        (T1, Answer(0, 3)),
        (T0, Answer(0, 1)),
        (GONE, Answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ]


def test_no_time_is_lost_after_the_last_answer(cluster: AdminCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.has(topic("t", [1, 2], [3, 1]))
    monkeypatch.setattr(AdminClient, "back_off", no_wait)
    assert len(outcome(Asked().all)) == 1


def test_leaders_that_move_or_fall_silent_are_looked_for_again(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1, 2], [3, 1]))
    asked = Asked(ErrorCode.NOT_LEADER_OR_FOLLOWER, ConnectionResetError("gone"))
    (found,) = outcome(asked.all)
    assert (found[T0], found[T1]) == (Answer(0, 1), Answer(0, 3))
    assert len(cluster.requests(MetadataRequest)) >= 2


def test_a_partition_without_a_leader_is_an_error_in_the_end(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [2]))
    cluster.topics["t"].partitions[0].leader_id = -1

    async def impatient(client: AdminClient) -> dict[TopicPartition, Answer]:
        client.config = client.config._replace(api_timeout_ms=0)
        return await Asked().all(client)

    (found,) = outcome(impatient)
    assert (found[T0], found[T1]) == (Answer(ErrorCode.LEADER_NOT_AVAILABLE), Answer(0, 2))


def test_leaders_are_remembered(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [2]))

    async def twice(client: AdminClient) -> None:
        leaders = PartitionLeaders(client)
        for _ in range(2):
            await leaders.ask([T0, T1], Asked().ask, Answer)

    outcome(twice)
    assert len(cluster.requests(MetadataRequest)) == 1


def test_partitions_by_topic() -> None:
    assert by_topic([T1, GONE, T0]) == {"t": [1, 0], "gone": [0]}
