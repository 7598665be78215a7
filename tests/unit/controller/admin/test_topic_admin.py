from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from odradek.controller.admin.topic_admin import LOGGED_TOPICS
from odradek.controller.events import ElectionType
from odradek.controller.model import topic_names
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.model.topic_names import metric_name
from odradek.controller.tree.metadata_tree import Create, Operation, SetData, StorageFull
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster, wanted


@async_test
async def test_a_topic_is_usable_when_create_returns() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        results = await cluster.admin().create_topics([wanted("t", 3, 1)], timeout_ms=1000)
        result = results["t"]
        assert result.is_success
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert cluster.brokers[0].leaders == {TopicPartition("t", p): 0 for p in range(3)}
        node = await cluster.client.get(znodes.topic_path("t"))
        assert node is not None
        assert topic_nodes.decode_topic("t", node.data) == topic_nodes.TopicIdReplicaAssignment(
            "t", result.topic_id, {p: ReplicaAssignment((0,)) for p in range(3)}
        )
        assert await cluster.client.exists("/config/topics/t")
        assert await cluster.client.children(znodes.CONFIG_CHANGES) == ()
        assert await cluster.state("t", 2) == (0, (0,), 0, 0)


@async_test
async def test_a_topic_that_is_created_again_because_the_answer_was_lost_is_created() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        topic_id, other = bytes(15) + b"a", bytes(15) + b"b"
        ids = [topic_id, topic_id, other]
        cluster.new_topic_id = lambda: ids.pop(0)
        admin = cluster.admin()
        for _ in range(2):
            assert await admin.create_topic_with_assignment("t", {0: [0]}, {}) == topic_id
        with pytest.raises(KafkaError) as refusal:
            await admin.create_topic_with_assignment("t", {0: [0]}, {})
        assert refusal.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


@async_test
async def test_an_error_of_the_tree_is_the_error_of_its_topic() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        tree = cluster.client.tree
        admin = cluster.admin()

        class Full:
            """Has no room for anything called "bad"."""

            async def run(self, operation: Operation[object]) -> object:
                if isinstance(operation, Create | SetData) and operation.path.endswith("/bad"):
                    raise StorageFull(operation.path)
                return await tree.run(operation)

            submit = tree.submit

        await admin.create_topics([wanted("bad", 1, 1)], timeout_ms=1000)
        admin._client.tree = Full()
        created = await admin.create_topics([wanted("good", 1, 1)], timeout_ms=1000)
        added = await admin.create_partitions(
            [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("bad", "good")], timeout_ms=1000
        )
        deleted = await admin.delete_topics(["bad", "good"], timeout_ms=1000)
        assert created["good"].is_success
        for results in (added, deleted):
            assert results["good"].is_success
            assert (results["bad"].error_code, results["bad"].error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


@async_test
async def test_a_topic_whose_node_cannot_be_read_fails_alone() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("good", {0: [0]})
        admin = cluster.admin()
        node = Create(znodes.topic_path("bad"), b'{"version":3,"partitions":{"0":["x"]}}')
        await cluster.client.tree.run(node)
        added = await admin.create_partitions(
            [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("bad", "good")], timeout_ms=1000
        )
        assert added["good"].is_success
        assert (added["bad"].error_code, added["bad"].error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        deleted = await admin.delete_topics(["bad", "good"], timeout_ms=1000)
        assert all(deleted[name].is_success for name in ("good", "bad")), "it is the way to get rid of such a node"


@async_test
async def test_a_count_that_no_cluster_can_carry_is_refused_before_anything_is_worked_out_for_it() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        admin = cluster.admin()
        await admin.create_topics([wanted("small", 1, 1)], timeout_ms=1000)
        many = [wanted("huge", 2**31 - 1, 1), *(wanted(f"half-{n}", 60_000, 1) for n in range(2))]
        created = await admin.create_topics(many, timeout_ms=1000, validate_only=True)
        more = CreatePartitionsTopic(name="small", count=2**31 - 1, assignments=None)
        added = await admin.create_partitions([more], timeout_ms=1000, validate_only=True)
        codes = {name: result.error_code for name, result in {**created, **added}.items()}
        assert codes == {
            "huge": ErrorCode.POLICY_VIOLATION,
            "half-0": ErrorCode.NONE,
            "half-1": ErrorCode.POLICY_VIOLATION,
            "small": ErrorCode.POLICY_VIOLATION,
        }


@async_test
async def test_creation_tells_the_replicas_and_then_everybody() -> None:
    async with controller_cluster() as cluster:
        for broker_id in (1, 2, 3):
            await cluster.start(broker_id)
        cluster.take_requests()
        topic_id = (await cluster.create("t", {0: [2, 1]})).topic_id
        requests = cluster.take_requests()
        for broker_id in (1, 2):
            become, metadata = requests[broker_id]
            assert isinstance(become, LeaderAndIsrRequest)
            assert become.type == 0
            assert become.topic_states[0].topic_id == topic_id
            (state,) = become.topic_states[0].partition_states
            assert (state.leader, state.isr, state.replicas, state.is_new) == (2, [2, 1], [2, 1], True)
            assert (state.leader_epoch, state.partition_epoch, state.controller_epoch) == (0, 0, 1)
            assert [(leader.broker_id, leader.host_name) for leader in become.live_leaders] == [(2, "host2")]
            assert isinstance(metadata, UpdateMetadataRequest)
        (only,) = requests[3]
        assert isinstance(only, UpdateMetadataRequest)
        assert only.topic_states[0].topic_id == topic_id
        assert [broker.id for broker in only.live_brokers] == [1, 2, 3]


@async_test
async def test_a_request_for_many_topics_looks_at_each_name_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka does it, each new topic is compared with all others: 100 of them with 5,000 names."""
    looks = 0

    def counted(topic: str) -> str:
        nonlocal looks
        looks += 1
        return metric_name(topic)

    monkeypatch.setattr(topic_names, "metric_name", counted)
    async with controller_cluster() as cluster:
        await cluster.start(0)
        topics = [wanted(f"t_{number}", 1, 1) for number in range(100)]
        results = await cluster.admin().create_topics(topics, timeout_ms=1000)
        assert {result.error_code for result in results.values()} == {ErrorCode.NONE}
    assert looks <= 2 * len(topics)


@async_test
async def test_defaults_come_from_the_broker() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        admin = cluster.admin(num_partitions=4, default_replication_factor=2)
        result = (await admin.create_topics([wanted("t")], timeout_ms=1000))["t"]
        assert (result.num_partitions, result.replication_factor) == (4, 2)


@async_test
async def test_validation_alone_changes_nothing() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        results = await cluster.admin().create_topics(
            [wanted("t", 3, 1, configs={"retention.ms": "5"}), wanted("u", 3, 9)], timeout_ms=1000, validate_only=True
        )
        assert results["t"].is_success
        assert (results["t"].num_partitions, results["t"].overrides) == (3, {"retention.ms": "5"})
        assert results["u"].error_code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert await cluster.client.topics() == set()


@async_test
async def test_racks_of_some_brokers_only_are_an_unknown_error_without_message() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0, rack="north")
        await cluster.start(1)
        results = await cluster.admin(0).create_topics([wanted("t", 1, 1)], timeout_ms=1000)
        assert (results["t"].error_code, results["t"].error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


@async_test
async def test_racks_of_some_brokers_only_refuse_more_partitions_for_all_topics() -> None:
    """Also for one that names its brokers."""
    async with controller_cluster() as cluster:
        await cluster.start(0, rack="north")
        await cluster.create("t", {0: [0]})
        admin = cluster.admin(0)
        topic = CreatePartitionsTopic(name="t", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[0])])
        assert (await admin.create_partitions([topic], timeout_ms=1000))["t"].is_success
        await cluster.start(1)
        with pytest.raises(KafkaError) as refusal:
            await admin.create_partitions([topic], timeout_ms=1000)
        assert (refusal.value.code, refusal.value.specific_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


@async_test
async def test_without_a_timeout_the_answer_is_request_timed_out() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        results = await cluster.admin().create_topics([wanted("t", 1, 1)], timeout_ms=0)
        assert (results["t"].error_code, results["t"].error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
        await cluster.settle()
        assert (await cluster.state("t"))[0] == 0


@async_test
async def test_a_topic_without_live_replicas_times_out() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        results = await cluster.admin().create_topics([wanted("t", assignments={0: [7]})], timeout_ms=100)
        assert results["t"].error_code is ErrorCode.REQUEST_TIMED_OUT
        await cluster.start(7)
        assert await cluster.state("t") == (7, (7,), 0, 0)


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (wanted("exists", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'exists' already exists."),
        (wanted("going", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'going' is marked for deletion."),
        (
            wanted("a_b", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'a_b' collides with existing topics: a.b",
        ),
        (wanted("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
        (wanted("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (wanted("t", 0, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (
            wanted("t", 1, 2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 2 larger than available brokers: 1.",
        ),
        (
            wanted("t", 1, assignments={0: [0]}),
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        ),
        (
            wanted("t", assignments={0: [0], 2: [0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            wanted("t", assignments={0: [0], 1: [0, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All partitions should have the same number of replicas",
        ),
        (
            wanted("t", assignments={0: [0, 0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(0, 0))",
        ),
        (
            wanted("t", 1, 1, configs={"a": None, "b": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: a,b",
        ),
        (
            wanted("t", 1, 1, configs={"no.such": "1"}),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (
            wanted("t", 1, 1, configs={"retention.ms": "x"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
)
@async_test
async def test_refused_topics(topic: CreatableTopic, code: ErrorCode, message: str) -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        await cluster.create("exists", {0: [0]})
        await cluster.create("a.b", {0: [0]})
        await controller.shutdown()
        client = controller.client
        await client.create_recursive(znodes.delete_topic_path("going"))
        before = await client.topics()
        admin = cluster.admin(0)
        result = (await admin.create_topics([topic], timeout_ms=1000))[topic.name]
        assert (result.error_code, result.error_message) == (code, message)
        assert await client.topics() == before


@async_test
async def test_topics_of_one_request_fail_by_themselves() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        results = await cluster.admin().create_topics([wanted("bad/", 1, 1), wanted("good", 1, 1)], timeout_ms=1000)
        assert [result.error_code for result in results.values()] == [
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.NONE,
        ]


@async_test
async def test_of_many_refused_topics_the_first_ones_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        admin = cluster.admin()
        names = [f"!{number}" for number in range(LOGGED_TOPICS + 7)]
        with caplog.at_level(logging.INFO, "odradek.controller.admin"):
            created = await admin.create_topics([wanted(name) for name in names], timeout_ms=1000)
            deleted = await admin.delete_topics(names, timeout_ms=1000)
        assert {result.error_code for result in created.values()} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert len(created) == len(deleted) == len(names)
        lines = caplog.messages
        assert len(lines) == 2 * (LOGGED_TOPICS + 1)
        assert lines[LOGGED_TOPICS] == lines[-1] == "7 more topics of the request were refused"


@async_test
async def test_mutations_are_counted_and_may_be_throttled() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        counted: list[int] = []

        def record(partitions: int) -> None:
            if counted:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            counted.append(partitions)

        results = await cluster.admin().create_topics(
            [wanted("a", 3, 1), wanted("b", 2, 1)], timeout_ms=1000, record_mutations=record
        )
        assert counted == [3]
        assert results["b"].error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert await cluster.client.topics() == {"a"}


@async_test
async def test_automatic_creation_answers_at_once() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        admin = cluster.admin()
        topics = [wanted("t", 1, 1), wanted("u", 1, 3)]
        expected = {"t": ErrorCode.LEADER_NOT_AVAILABLE, "u": ErrorCode.INVALID_REPLICATION_FACTOR}
        assert await admin.auto_create_topics(topics) == expected
        assert await admin.auto_create_topics(topics) == expected
        await cluster.settle()
        assert (await cluster.state("t"))[0] == 0


@async_test
async def test_deletion() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0], 1: [0]}, {"retention.ms": "1"})
        results = await cluster.admin().delete_topics(["t", "none", "bad/"], timeout_ms=1000)
        assert results["t"].is_success
        for name in ("none", "bad/"):
            assert results[name].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert results[name].error_message == f"Topic `{name}` to delete does not exist"
        await cluster.settle()
        assert cluster.brokers[0].leaders == {}
        for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
            assert not await cluster.client.exists(path)
        assert (await cluster.create("t", {0: [0]})).is_success
        assert await cluster.state("t") == (0, (0,), 0, 0)


@async_test
async def test_adding_partitions() -> None:
    async with controller_cluster() as cluster:
        for broker_id in range(3):
            await cluster.start(broker_id)
        topic_id = (await cluster.create("t", {0: [1, 2], 1: [2, 0]})).topic_id
        results = await cluster.admin().create_partitions(
            [CreatePartitionsTopic(name="t", count=4, assignments=None)], timeout_ms=1000
        )
        assert results["t"].is_success
        (topic,) = await cluster.client.topic_assignments(["t"])
        assert topic.topic_id == topic_id
        assert {p: a.replicas for p, a in topic.assignment.items()} == {0: (1, 2), 1: (2, 0), 2: (0, 2), 3: (1, 2)}
        await cluster.settle()
        assert (await cluster.state("t", 3))[0] == 1


Prepare = Callable[[CreatePartitionsTopic], None]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (
            CreatePartitionsTopic(name="none", count=2, assignments=None),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'none' does not exist.",
        ),
        (
            CreatePartitionsTopic(name="t", count=1, assignments=None),
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 2 partitions, which is higher than the requested 1.",
        ),
        (
            CreatePartitionsTopic(name="t", count=2, assignments=None),
            ErrorCode.INVALID_PARTITIONS,
            "Topic already has 2 partitions.",
        ),
        (
            CreatePartitionsTopic(name="t", count=3, assignments=[CreatePartitionsAssignment(broker_ids=[9])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unknown broker(s) in replica assignment: 9.",
        ),
        (
            CreatePartitionsTopic(name="t", count=4, assignments=[CreatePartitionsAssignment(broker_ids=[0])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (
            CreatePartitionsTopic(name="t", count=3, assignments=[CreatePartitionsAssignment(broker_ids=[])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Cannot have replication factor of 0 for partition id 2.",
        ),
        (
            CreatePartitionsTopic(name="t", count=3, assignments=[CreatePartitionsAssignment(broker_ids=[1, 1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2.",
        ),
        (
            CreatePartitionsTopic(name="t", count=3, assignments=[CreatePartitionsAssignment(broker_ids=[0, 1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Inconsistent replication factor between partitions, partition 0 has 1 while partitions [2] have "
            "replication factors [2], respectively.",
        ),
    ],
)
@async_test
async def test_refused_partitions(topic: CreatePartitionsTopic, code: ErrorCode, message: str) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0], 1: [1]})
        result = (await cluster.admin().create_partitions([topic], timeout_ms=1000))[topic.name]
        assert (result.error_code, result.error_message) == (code, message)
        assert len((await cluster.client.topic_assignments(["t"]))[0].assignment) == 2


@async_test
async def test_adding_partitions_to_a_topic_that_zookeeper_has_no_path_for_fails_alone() -> None:
    names = ("..", "", "t")
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]})
        topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names]
        added = await cluster.admin().create_partitions(topics, timeout_ms=1000)
        codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
        assert [added[name].error_code for name in names] == codes


@async_test
async def test_partitions_with_a_manual_assignment() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0]})
        topic = CreatePartitionsTopic(name="t", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[1])])
        admin = cluster.admin()
        assert (await admin.create_partitions([topic], timeout_ms=1000, validate_only=True))["t"].is_success
        assert len((await cluster.client.topic_assignments(["t"]))[0].assignment) == 1
        assert (await admin.create_partitions([topic], timeout_ms=1000))["t"].is_success
        await cluster.settle()
        assert (await cluster.state("t", 1))[0] == 1


@async_test
async def test_no_partitions_are_added_while_the_topic_is_reassigned() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0]})
        await cluster.reassign({TopicPartition("t", 0): (1,)})
        topic = CreatePartitionsTopic(name="t", count=2, assignments=None)
        result = (await cluster.admin().create_partitions([topic], timeout_ms=1000))["t"]
        assert result.error_code is ErrorCode.REASSIGNMENT_IN_PROGRESS
        assert (await controller.elect_leaders(frozenset(), ElectionType.PREFERRED)) == {}
