"""Automatic creation of topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.internal_topics import AutoTopicCreationManager
from odradek.controller.admin.topic_admin import AdminManager
from odradek.controller.tree.metadata_tree import SessionExpired
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic
from tests.support.async_test import async_test

LATER = ErrorCode.LEADER_NOT_AVAILABLE


def no_quota(partitions: int) -> None:
    """Counts nothing."""


class Admin:
    """Records the topics to create; answers when `answer` is set."""

    def __init__(self) -> None:
        self.asked: list[list[CreatableTopic]] = []
        self.answer = asyncio.Event()
        self.error = LATER
        self.failure: Exception | None = None

    async def auto_create_topics(
        self, topics: Sequence[CreatableTopic], record_mutations: Callable[[int], None]
    ) -> Mapping[str, ErrorCode]:
        self.asked.append(list(topics))
        await self.answer.wait()
        if self.failure is not None:
            raise self.failure
        return {topic.name: self.error for topic in topics}


class Creator:
    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.admin = Admin()
        self.tasks: list[asyncio.Task[None]] = []
        self.creator = AutoTopicCreationManager(
            BrokerConfig(settings or {}), cast("AdminManager", self.admin), self._spawn
        )

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def create(self, *names: str) -> dict[str | None, tuple[int, bool]]:
        """(error, is internal) of each."""
        answers = await self.creator.create_automatically(names, no_quota)
        return {answer.name: (answer.error_code, answer.is_internal) for answer in answers}


@async_test
async def test_topics_get_the_brokers_defaults() -> None:
    creator = Creator({"num.partitions": "4"})
    creator.admin.answer.set()
    assert await creator.create("a", "b") == {"a": (LATER, False), "b": (LATER, False)}
    ((a, b),) = creator.admin.asked
    assert (a.name, a.num_partitions, a.replication_factor, a.configs) == ("a", 4, 1, [])
    assert b.name == "b"


@async_test
async def test_names_that_cannot_be_are_not_tried() -> None:
    creator = Creator()
    creator.admin.answer.set()
    found = await creator.create("a/b", "", "fine")
    assert found == {
        "a/b": (ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        "": (ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        "fine": (LATER, False),
    }
    assert [[topic.name for topic in asked] for asked in creator.admin.asked] == [["fine"]]


@async_test
async def test_creation_under_way_is_not_begun_again() -> None:
    creator = Creator()
    first = asyncio.create_task(creator.create("a"))
    await asyncio.sleep(0)
    assert await creator.create("a") == {"a": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)}
    creator.creator.create_in_background("a", no_quota)
    assert creator.tasks == []
    creator.admin.answer.set()
    assert await first == {"a": (LATER, False)}
    assert len(creator.admin.asked) == 1
    await creator.create("a")
    assert len(creator.admin.asked) == 2, "after its end the creation can be tried again"


@async_test
async def test_internal_topic_needed_twice_in_one_turn_is_created_once() -> None:
    """FindCoordinator with many keys needs the topic for each of them."""
    creator = Creator()
    creator.admin.answer.set()
    for _ in range(100):
        creator.creator.create_in_background("__consumer_offsets", no_quota)
    await asyncio.gather(*creator.tasks)
    assert len(creator.admin.asked) == 1
    assert len(creator.tasks) == 1


@async_test
async def test_internal_topics_are_as_kafka_makes_them() -> None:
    creator = Creator({"offsets.topic.num.partitions": "7", "transaction.state.log.num.partitions": "9"})
    creator.admin.answer.set()
    found = await creator.create("__consumer_offsets", "__transaction_state")
    assert found == {"__consumer_offsets": (LATER, True), "__transaction_state": (LATER, True)}
    ((offsets, transactions),) = creator.admin.asked
    assert (offsets.num_partitions, transactions.num_partitions) == (7, 9)
    assert {config.name: config.value for config in offsets.configs} == {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "producer",
    }
    assert {config.name: config.value for config in transactions.configs} == {
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@async_test
async def test_failure_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    creator = Creator()
    creator.admin.answer.set()
    creator.admin.error = ErrorCode.INVALID_REPLICATION_FACTOR
    creator.creator.create_in_background("__consumer_offsets", no_quota)
    await asyncio.gather(*creator.tasks)
    assert "INVALID_REPLICATION_FACTOR" in caplog.text


@pytest.mark.parametrize("failure", [SessionExpired("", "the session has ended"), BadZnode("no JSON")])
@async_test
async def test_a_failure_of_the_tree_in_the_background_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    creator = Creator()
    creator.admin.answer.set()
    creator.admin.failure = failure
    for _ in range(2):
        creator.creator.create_in_background("__transaction_state", no_quota)
        await asyncio.gather(*creator.tasks)
    assert caplog.text.count("Creating __transaction_state failed") == 2
