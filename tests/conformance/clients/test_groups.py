"""Consumer groups with real clients: assignors; members that come, go, die, are static; topics that grow or appear."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

import aiokafka
import confluent_kafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from aiokafka.structs import TopicPartition
from confluent_kafka import KafkaError
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as KafkaPythonSticky

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.group_member import KillableMember, Member, await_shares, partitions_of
from tests.support.loads.kafka_python_member import kafka_python_members
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Admin:
    return Admin(broker.bootstrap)


@pytest.fixture
def two_topics(admin: Admin, unique: Callable[[str], str]) -> dict[str, int]:
    """Two topics of three partitions each."""
    return {admin.create_topic(unique("group-a"), 3): 3, admin.create_topic(unique("group-b"), 3): 3}


@pytest.mark.parametrize(
    ("assignor", "shares"), [("range", (4, 2)), ("roundrobin", (3, 3)), ("cooperative-sticky", (3, 3))]
)
def test_two_members_share_two_topics(
    broker: Broker, two_topics: dict[str, int], unique: Callable[[str], str], assignor: str, shares: tuple[int, int]
) -> None:
    """Range deals each topic out on its own (2+1 twice); the others deal out all partitions together."""
    config = {"partition_assignment_strategy": assignor}
    group = unique("shares")
    everything = partitions_of(two_topics)
    with Member(broker.bootstrap, group, list(two_topics), **config) as first:
        await_shares([first], everything, [6])
        with Member(broker.bootstrap, group, list(two_topics), **config) as second:
            await_shares([first, second], everything, shares)
        await_shares([first], everything, [6])
        assert not first.errors


def test_cooperative_members_keep_what_they_do_not_give_away(
    broker: Broker, two_topics: dict[str, int], unique: Callable[[str], str]
) -> None:
    config = {"partition_assignment_strategy": "cooperative-sticky"}
    group = unique("cooperative")
    everything = partitions_of(two_topics)
    with Member(broker.bootstrap, group, list(two_topics), **config) as first:
        await_shares([first], everything, [6])
        with Member(broker.bootstrap, group, list(two_topics), **config) as second:
            _, taken = await_shares([first, second], everything, (3, 3))
            assert frozenset().union(*first.revocations) == taken
            assert second.revocations == []


async def aiokafka_shares(
    bootstrap: str, group: str, topics: list[str], strategy: type[AiokafkaSticky] | type[AiokafkaRoundRobin]
) -> tuple[AbstractSet[TopicPartition], AbstractSet[TopicPartition]]:
    """What two aiokafka members own once they have three partitions each."""
    async with asyncio.timeout(30):
        config = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "partition_assignment_strategy": [strategy],
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": 6000,
        }
        first, second = (aiokafka.AIOKafkaConsumer(*topics, **config) for _ in range(2))
        async with first, second:
            while (len(first.assignment()), len(second.assignment())) != (3, 3):
                await asyncio.gather(first.getmany(timeout_ms=50), second.getmany(timeout_ms=50))
            return first.assignment(), second.assignment()


@pytest.mark.parametrize("strategy", [AiokafkaRoundRobin, AiokafkaSticky])
def test_two_aiokafka_members(
    broker: Broker,
    two_topics: dict[str, int],
    unique: Callable[[str], str],
    strategy: type[AiokafkaSticky] | type[AiokafkaRoundRobin],
) -> None:
    first, second = asyncio.run(aiokafka_shares(broker.bootstrap, unique("aio"), list(two_topics), strategy))
    assert {(p.topic, p.partition) for p in first | second} == partitions_of(two_topics)


def test_two_kafka_python_members_with_the_sticky_assignor(
    broker: Broker, two_topics: dict[str, int], unique: Callable[[str], str]
) -> None:
    config = {"partition_assignment_strategy": [KafkaPythonSticky]}
    with kafka_python_members(broker.bootstrap, unique("sticky"), two_topics, 2, **config) as members:
        await_shares(members, partitions_of(two_topics), (3, 3))


def test_members_of_different_clients_share_a_group(
    broker: Broker, two_topics: dict[str, int], unique: Callable[[str], str]
) -> None:
    """librdkafka and aiokafka in one group: the leader of one library assigns to members of the other."""
    group = unique("mixed")

    async def with_aiokafka(member: Member) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            *two_topics,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            heartbeat_interval_ms=100,
            partition_assignment_strategy=[AiokafkaRange],
        )
        async with asyncio.timeout(30), consumer:
            while (len(consumer.assignment()), len(member.owned)) not in ((4, 2), (2, 4)):
                await consumer.getmany(timeout_ms=50)
            theirs = {(p.topic, p.partition) for p in consumer.assignment()}
            assert theirs | member.owned == partitions_of(two_topics)

    with Member(broker.bootstrap, group, list(two_topics), partition_assignment_strategy="range") as member:
        await_shares([member], partitions_of(two_topics), [6])
        asyncio.run(with_aiokafka(member))
        await_shares([member], partitions_of(two_topics), [6])


def test_many_members_join_at_once(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    """Eight members, seven partitions, no pause between them: each partition has one owner, one member is idle."""
    topic, group = admin.create_topic(unique("crowd"), 7), unique("crowd")
    members = [Member(broker.bootstrap, group, [topic], heartbeat_interval_ms=50) for _ in range(8)]
    try:
        await_shares(members, partitions_of({topic: 7}), [1] * 7 + [0])
        assert [error for member in members for error in member.errors] == []
    finally:
        for member in members:
            member.leave()


def test_a_killed_member_is_removed_after_its_session_timeout(
    broker: Broker, admin: Admin, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, group = admin.create_topic(unique("killed"), 4), unique("killed")
    with Member(broker.bootstrap, group, [topic]) as survivor:
        await_shares([survivor], partitions_of({topic: 4}), [4])
        other = KillableMember(tmp_path, broker.bootstrap, group, topic, session_timeout_ms=1500)
        try:
            other.start(owning=2)
            eventually(lambda: len(survivor.owned), accept=lambda owned: owned == 2)
            killed_at = time.monotonic()
            other.kill()
            await_shares([survivor], partitions_of({topic: 4}), [4])
            # After the end of a connection alone it would be at once; after the default time-out, 45 s.
            assert 0.5 < time.monotonic() - killed_at < 20
        finally:
            other.kill()


def test_a_static_member_comes_back_without_a_rebalance(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic, group = admin.create_topic(unique("static"), 4), unique("static")
    with Member(broker.bootstrap, group, [topic], group_instance_id="one") as one:
        two = Member(broker.bootstrap, group, [topic], group_instance_id="two")
        before = await_shares([one, two], partitions_of({topic: 4}), [2, 2])
        rounds = len(one.assignments), len(one.revocations)
        two.leave()  # a static member closes without LeaveGroup
        with Member(broker.bootstrap, group, [topic], group_instance_id="two") as again:
            assert await_shares([one, again], partitions_of({topic: 4}), [2, 2]) == before
            time.sleep(0.5)  # five heartbeats: a rebalance would have been noticed
            assert (len(one.assignments), len(one.revocations)) == rounds


def test_a_second_member_with_the_same_instance_id_fences_the_first(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic, group = admin.create_topic(unique("fenced"), 2), unique("fenced")
    with Member(broker.bootstrap, group, [topic], group_instance_id="same") as first:
        await_shares([first], partitions_of({topic: 2}), [2])
        with Member(broker.bootstrap, group, [topic], group_instance_id="same") as second:
            await_shares([second], partitions_of({topic: 2}), [2])
            eventually(lambda: first.errors)
            assert [error.code() for error in first.errors] == [KafkaError._FATAL]
            assert "FENCED" in first.errors[0].str().upper()
            assert second.errors == []


def test_a_rebalance_follows_a_topic_that_gains_partitions(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic, group = admin.create_topic(unique("growing"), 1), unique("growing")
    config = {"topic_metadata_refresh_interval_ms": 200}
    with (
        Member(broker.bootstrap, group, [topic], **config) as first,
        Member(broker.bootstrap, group, [topic], **config) as second,
    ):
        await_shares([first, second], partitions_of({topic: 1}), [1, 0])
        admin.create_partitions(topic, 4)
        await_shares([first, second], partitions_of({topic: 4}), [2, 2])


def test_a_pattern_picks_up_a_topic_created_later(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    stem, group = unique("pattern"), unique("pattern")
    admin.create_topic(f"{stem}-1", 2)
    with Member(broker.bootstrap, group, [f"^{stem}-[0-9]+"], topic_metadata_refresh_interval_ms=200) as member:
        await_shares([member], partitions_of({f"{stem}-1": 2}), [2])
        admin.create_topic(f"{stem}-2", 2)
        admin.create_topic(f"{stem}-no", 2)
        await_shares([member], partitions_of({f"{stem}-1": 2, f"{stem}-2": 2}), [4])
        admin.delete_topic(f"{stem}-1")
        await_shares([member], partitions_of({f"{stem}-2": 2}), [2])


def test_a_group_reads_each_record_once_across_a_handover(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    """The first member reads half, commits as it leaves; the second goes on exactly there."""
    topic, group = admin.create_topic(unique("handover")), unique("handover")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for i in range(50):
        producer.produce(topic, b"%d" % i)
    assert producer.flush(20) == 0
    with Member(broker.bootstrap, group, [topic], enable_auto_commit=True) as first:
        eventually(lambda: len(first.values), accept=lambda n: n == 50)
    for i in range(50, 100):
        producer.produce(topic, b"%d" % i)
    assert producer.flush(20) == 0
    with Member(broker.bootstrap, group, [topic]) as second:
        eventually(lambda: len(second.values), accept=lambda n: n >= 50)
        assert second.values == [b"%d" % i for i in range(50, 100)]
