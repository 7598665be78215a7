"""Requests of transactions to other brokers, and to this one."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from odradek.broker.apis.services import Services
from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.transaction_channel import InterBrokerChannel
from odradek.controller.model.broker_info import EndPoint
from odradek.controller.tree.metadata_tree import ConnectionLoss
from odradek.coordinator.transaction.markers import NO_NODE
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.in_process.links import OWN_ID, FakeLinks, turns


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path) as broker:
        yield broker


class _OtherBrokers:
    """A broker that sends requests; only its id is used."""

    broker_id = OWN_ID

    def __init__(self) -> None:
        self.links = FakeLinks()
        self._tasks: set[asyncio.Task[None]] = set()
        self.channel = InterBrokerChannel(
            self.links.broker_links("markers"), self.links.broker_links("verification"), self._spawn, 700, 1
        )
        self.channel.serve(cast("Services", self))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    async def ended(self) -> list[object]:
        """The results of all spawned coroutines."""
        return await asyncio.gather(*self._tasks, return_exceptions=True)


def test_leaders_and_coordinators_are_those_of_the_metadata(broker: InProcessBroker) -> None:
    channel = broker.links.inter_broker
    assert channel.leader_of(TopicPartition("t", 0)) == NO_NODE, "the broker has been told of nothing yet"
    assert channel.coordinator_of("id") is None
    broker.create_topic("__transaction_state", 2, configs={"cleanup.policy": "compact"})
    assert channel.leader_of(TopicPartition("t", 0)) is None, "it has not been told of this one"
    broker.create_topic("t")
    assert channel.leader_of(TopicPartition("t", 0)) == broker.services.broker_id
    assert channel.coordinator_of("id") == broker.services.broker_id
    snapshot = broker.services.metadata_cache.snapshot
    broker.services.metadata_cache.snapshot = replace(snapshot, nodes={})
    assert channel.leader_of(TopicPartition("t", 0)) == NO_NODE
    assert channel.coordinator_of("id") is None


def test_partitions_are_deleted_if_the_tree_says_so(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata cache may have heard of some partitions only, after the controller has changed."""
    broker.create_topic("t", 2)
    broker.create_topic("u")
    there = {TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)}
    gone = {TopicPartition("t", 2), TopicPartition("none", 0)}

    def deleted() -> frozenset[TopicPartition]:
        answers: list[frozenset[TopicPartition]] = []
        broker.links.inter_broker.find_deleted(frozenset(there | gone), answers.append)
        assert broker.settle(lambda: bool(answers))
        return answers[0]

    def all_deleted_together() -> list[frozenset[TopicPartition]]:
        """Of the first question, and of two that come while it is answered, for which the tree is read once."""
        answers: list[frozenset[TopicPartition]] = []
        reads = 0
        counts = broker.services.topic_partition_counts

        async def counted(topics: Collection[str]) -> dict[str, int]:
            nonlocal reads
            reads += 1
            return await counts(topics)

        with monkeypatch.context() as patches:
            patches.setattr(broker.services, "topic_partition_counts", counted)
            for asked in (there | gone, {TopicPartition("none", 0)}, there):
                broker.links.inter_broker.find_deleted(frozenset(asked), answers.append)
            assert broker.settle(lambda: len(answers) == 3)
        assert reads <= 2
        return answers

    async def waiting_for_deletion() -> set[str]:
        return {"u"}

    async def no_connection() -> set[str]:
        raise ConnectionLoss("/admin/delete_topics")

    assert deleted() == gone
    assert all_deleted_together() == [gone, {TopicPartition("none", 0)}, set()]
    client = broker.services.controller.client
    monkeypatch.setattr(client, "topic_deletions", waiting_for_deletion)
    assert deleted() == gone | {TopicPartition("u", 0)}
    monkeypatch.setattr(client, "topic_deletions", no_connection)
    assert deleted() == set()


def test_markers_and_questions_reach_the_handlers(broker: InProcessBroker) -> None:
    channel = broker.links.inter_broker
    markers: list[WriteTxnMarkersResponse | None] = []
    channel.send_markers(0, WriteTxnMarkersRequest(), markers.append)
    assert markers == [WriteTxnMarkersResponse()]
    verified: list[AddPartitionsToTxnResponse | None] = []
    channel.send_verification(0, AddPartitionsToTxnRequest(), verified.append)
    assert verified == [AddPartitionsToTxnResponse()]


def _answer(end_point: EndPoint, request: Request) -> Response:
    return WriteTxnMarkersResponse() if isinstance(request, WriteTxnMarkersRequest) else AddPartitionsToTxnResponse()


@async_test
async def test_other_brokers_are_asked_over_links_of_their_own() -> None:
    others = _OtherBrokers()
    others.links.know(2, {2: 9002, 3: 9003})
    others.links.answer = _answer
    answers: list[Response | None] = []
    others.channel.send_markers(2, WriteTxnMarkersRequest(), answers.append)
    others.channel.send_verification(3, AddPartitionsToTxnRequest(), answers.append)
    assert answers == []
    await turns()
    assert answers == [WriteTxnMarkersResponse(), AddPartitionsToTxnResponse()]
    assert [(link.client_id, link.end_point.port, link.asked) for link in others.links.made] == [
        ("markers", 9002, [(WriteTxnMarkersRequest(), 1, 700)]),
        ("verification", 9003, [(AddPartitionsToTxnRequest(), None, 700)]),
    ]
    others.channel.close()
    assert all(link.is_closed for link in others.links.made)


@async_test
async def test_a_coordinator_that_cannot_verify_is_answered_for() -> None:
    def refuse(end_point: EndPoint, request: Request) -> Response:
        raise VersionMismatch("it knows versions 0 to 3")

    others = _OtherBrokers()
    others.links.know(2, {2: 9002})
    others.links.answer = refuse
    answers: list[Response | None] = []
    others.channel.send_verification(2, AddPartitionsToTxnRequest(), answers.append)
    await turns()
    assert answers == [AddPartitionsToTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)]


@async_test
async def test_request_that_does_not_reach_a_broker_is_answered_none() -> None:
    others = _OtherBrokers()
    others.links.know(2, {2: 9002})
    answers: list[Response | None] = []
    others.channel.send_markers(2, WriteTxnMarkersRequest(), answers.append)
    others.channel.send_verification(4, AddPartitionsToTxnRequest(), answers.append)
    await turns()
    assert answers == [None, None]


@async_test
async def test_a_bug_on_the_way_is_answered_none_too() -> None:
    def fail(end_point: EndPoint, request: Request) -> Response:
        raise ZeroDivisionError

    others = _OtherBrokers()
    others.links.know(2, {2: 9002})
    others.links.answer = fail
    answers: list[Response | None] = []
    others.channel.send_markers(2, WriteTxnMarkersRequest(), answers.append)
    others.channel.send_verification(2, AddPartitionsToTxnRequest(), answers.append)
    await turns()
    assert answers == [None, None]
    assert [type(error) for error in await others.ended()] == [ZeroDivisionError] * 2
