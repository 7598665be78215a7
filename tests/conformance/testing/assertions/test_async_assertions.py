"""The assertions of `AsyncBroker`, with aiokafka as the client."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from odradek.testing import AsyncBroker
from odradek.testing.errors import NoSuchTopic, WaitTimedOut
from tests.support.async_test import async_test

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("own_process", [False, True], ids=["thread", "process"])
@async_test
async def test_records_requests_and_topics(own_process: bool) -> None:
    async with AsyncBroker(own_process=own_process) as broker:
        topic = broker.topic("t")
        waiting = asyncio.ensure_future(topic.wait_for(2, where=lambda record: record.key == b"k"))
        created = asyncio.ensure_future(topic.wait_until_created())
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="app")
        await producer.start()
        for value in ({"a": 1}, None):
            await producer.send_and_wait("t", None if value is None else json.dumps(value).encode(), key=b"k")
        await producer.stop()
        await created
        first, tombstone = await waiting
        assert (first.json(), tombstone.json()) == ({"a": 1}, None)
        assert await topic.records() == [first, tombstone]
        assert await topic.values(decode=json.loads) == [{"a": 1}, None]
        assert await topic.keys(decode=bytes.decode) == ["k", "k"]
        assert [each.high_watermark for each in (await topic.describe()).partitions] == [2]
        assert await broker.topics() == ["t"]
        (known, *_) = await broker.producers("t", 0) or [None]
        assert known is None or known.producer_id >= 0
        assert len(await broker.requests("Produce", client_id="app")) == 2
        await broker.assert_requested("Produce", topic="t", times=2)
        assert len(await broker.wait_for_request("Produce", count=2)) == 2
        with pytest.raises(AssertionError, match="Expected JoinGroup at least once; it was answered never"):
            await broker.assert_requested("JoinGroup")
        assert "t: 0 has 0..2" in await broker.failure_report()
        assert await broker.last_request_number() > 0
        await broker.clear_requests()
        assert await broker.requests() == []
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        await admin.delete_topics(["t"])
        await admin.close()
        await topic.wait_until_deleted()
        with pytest.raises(NoSuchTopic):
            await topic.records()


@async_test
async def test_groups_and_transactions() -> None:
    async with AsyncBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="tx")
        await producer.start()
        transaction = broker.transaction("tx")
        for end in (producer.commit_transaction, producer.abort_transaction):
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"v")
            await transaction.wait_for_state("Ongoing")
            await end()
        await transaction.wait_for_committed()
        await transaction.wait_for_aborted()
        described = await transaction.describe()
        assert described is not None
        assert [each.transactional_id for each in await broker.transactions()] == ["tx"]
        assert (described.commits, described.aborts) == (1, 1)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", enable_auto_commit=False
        )
        await consumer.start()
        group = broker.group("g")
        await group.wait_for_state("Stable", members=1)
        await consumer.commit({TopicPartition("t", 0): 1})
        assert (await group.wait_for_offset("t", 0, 1)).offsets["t", 0].offset == 1
        await consumer.stop()
        assert (await group.wait_for(lambda each: not each.members)).history[-1].left
        assert (await group.describe()).state == "Empty"
        assert await broker.groups() == ["g"]
        with pytest.raises(WaitTimedOut):
            await group.wait_for_state("Stable", timeout=0.01)


@pytest.mark.parametrize("own_process", [False, True], ids=["thread", "process"])
@async_test
async def test_a_wait_that_is_cancelled(own_process: bool) -> None:
    async with AsyncBroker(own_process=own_process) as broker:
        waiting = asyncio.ensure_future(broker.topic("t").wait_for(timeout=30))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.1)
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("t", b"v")  # the question of the process ends now, and nobody waits for its answer
        await producer.stop()
        assert [record.value for record in await broker.topic("t").wait_for()] == [b"v"]
