"""The metadata cache applies UpdateMetadata requests as Kafka's does."""

from __future__ import annotations

from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.controller.model.leader_and_isr import LEADER_DURING_DELETE
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.topic_partition import TopicPartition

TOPIC_ID = bytes(range(16))


def live(*broker_ids: int, listener: str = "PLAINTEXT") -> list[UpdateMetadataBroker]:
    return [
        UpdateMetadataBroker(
            id=broker_id,
            endpoints=[UpdateMetadataEndpoint(port=9000 + broker_id, host=f"h{broker_id}", listener=listener)],
        )
        for broker_id in broker_ids
    ]


def state(partition: int, leader: int, replicas: list[int] | None = None) -> UpdateMetadataPartitionState:
    replicas = [1] if replicas is None else replicas
    return UpdateMetadataPartitionState(
        partition_index=partition, leader=leader, leader_epoch=3, isr=replicas, replicas=replicas
    )


def update(
    cache: MetadataCache,
    *states: UpdateMetadataPartitionState,
    topic: str = "t",
    topic_id: bytes = TOPIC_ID,
    brokers: list[UpdateMetadataBroker] | None = None,
) -> list[TopicPartition]:
    topics = [UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=list(states))]
    return cache.update(
        UpdateMetadataRequest(
            controller_id=1,
            topic_states=topics if states else [],
            live_brokers=live(1, 2) if brokers is None else brokers,
        )
    )


def metadata(cache: MetadataCache, *, endpoints: bool = False, listeners: bool = True) -> list[MetadataResponseTopic]:
    return list(
        cache.topic_metadata(
            ["t"], "PLAINTEXT", error_unavailable_endpoints=endpoints, error_unavailable_listeners=listeners
        )
    )


def ask(cache: MetadataCache, *, endpoints: bool = False, listeners: bool = True) -> list[tuple[int, int, int]]:
    topics = metadata(cache, endpoints=endpoints, listeners=listeners)
    return [(part.partition_index, part.leader_id, part.error_code) for part in topics[0].partitions]


def test_partitions_are_incremental_and_live_brokers_complete() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    update(cache, state(1, 2), brokers=live(2))
    assert cache.snapshot.partitions["t"].keys() == {0, 1}
    assert [node.broker_id for node in cache.alive_nodes("PLAINTEXT")] == [2]


def test_request_without_partitions_keeps_those_known() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    update(cache, brokers=live(1))
    assert cache.contains_partition("t", 0)
    assert cache.topic_id("t") == TOPIC_ID


def test_leader_during_delete_removes_the_partition_and_the_last_one_its_topic() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1), state(1, 1))
    assert update(cache, state(0, LEADER_DURING_DELETE)) == [TopicPartition("t", 0)]
    assert cache.contains("t")
    assert update(cache, state(1, LEADER_DURING_DELETE)) == [TopicPartition("t", 1)]
    assert not cache.contains("t")
    assert cache.topic_name(TOPIC_ID) is None


def test_deletion_of_a_partition_that_is_not_known_is_told_once() -> None:
    cache = MetadataCache(1)
    gone = state(0, LEADER_DURING_DELETE)
    assert update(cache, gone, gone) == [TopicPartition("t", 0)]
    assert not cache.contains("t")


def test_partition_that_the_same_request_creates_again_is_not_deleted() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    assert update(cache, state(0, LEADER_DURING_DELETE), state(0, 2)) == []
    assert cache.contains_partition("t", 0)


def test_zero_id_makes_a_topic_lose_its_id() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    assert cache.topic_name(TOPIC_ID) == "t"
    update(cache, state(0, 1), topic_id=ZERO_UUID)
    assert cache.topic_id("t") == ZERO_UUID
    assert cache.topic_name(TOPIC_ID) is None


def test_snapshot_taken_before_an_update_does_not_change() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    before = cache.snapshot
    update(cache, state(0, LEADER_DURING_DELETE))
    assert 0 in before.partitions["t"]


def test_dead_leader_is_not_available() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 3, [3, 1]))
    assert ask(cache) == [(0, -1, ErrorCode.LEADER_NOT_AVAILABLE)]


def test_leader_without_the_listener_has_an_error_of_its_own_for_newer_clients() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1), brokers=live(1, listener="INTERNAL"))
    assert ask(cache, listeners=True) == [(0, -1, ErrorCode.LISTENER_NOT_FOUND)]
    assert ask(cache, listeners=False) == [(0, -1, ErrorCode.LEADER_NOT_AVAILABLE)]


def test_oldest_clients_get_an_error_for_dead_replicas() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1, [1, 3]))
    assert ask(cache, endpoints=True) == [(0, 1, ErrorCode.REPLICA_NOT_AVAILABLE)]
    assert ask(cache, endpoints=False) == [(0, 1, ErrorCode.NONE)]


def test_flat_partition_states_of_older_controllers_are_read() -> None:
    cache = MetadataCache(1)
    flat = state(0, 1)
    flat.topic_name = "t"
    cache.update(UpdateMetadataRequest(controller_id=-1, ungrouped_partition_states=[flat], live_brokers=live(1)))
    assert cache.contains_partition("t", 0)
    assert cache.snapshot.controller_id is None


def test_a_request_without_topic_ids_says_nothing_of_them() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    flat = state(0, 2)
    flat.topic_name = "t"
    request = UpdateMetadataRequest(controller_id=1, ungrouped_partition_states=[flat], live_brokers=live(1, 2))
    cache.update(request)
    assert (cache.topic_id("t"), cache.topic_name(TOPIC_ID)) == (TOPIC_ID, "t")
    flat.leader = LEADER_DURING_DELETE
    cache.update(request)
    assert (cache.topic_id("t"), cache.topic_name(TOPIC_ID)) == (ZERO_UUID, None)


def test_answers_are_made_once_for_each_state_of_the_cluster_and_kind_of_question() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    assert ask(cache) == ask(cache) == [(0, 1, ErrorCode.NONE)]
    assert len(cache.snapshot.answers) == 1
    update(cache, state(0, 3, [3, 1]))
    assert cache.snapshot.answers == {}
    assert ask(cache, listeners=False) == [(0, -1, ErrorCode.LEADER_NOT_AVAILABLE)]
    assert ask(cache, endpoints=True) == [(0, -1, ErrorCode.LEADER_NOT_AVAILABLE)]
    assert len(cache.snapshot.answers) == 2


def test_answers_are_encoded_once_for_each_state_of_the_cluster() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    first = encode(MetadataResponse(topics=metadata(cache)), 12)
    (answers,) = cache.snapshot.answers.values()
    assert answers.encoded(12)
    assert encode(MetadataResponse(topics=metadata(cache)), 12) == first
    update(cache, state(0, 2))
    assert encode(MetadataResponse(topics=metadata(cache)), 12) != first


def test_questions_about_unknown_topics_leave_nothing() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    answered = list(
        cache.topic_metadata(
            ["nobody"], "PLAINTEXT", error_unavailable_endpoints=False, error_unavailable_listeners=True
        )
    )
    assert answered == []
    assert cache.snapshot.answers == {}


def test_the_topic_that_had_an_id_last_keeps_it_when_the_earlier_one_goes() -> None:
    cache = MetadataCache(1)
    for topic in ("a", "b"):
        update(cache, state(0, 1), topic=topic)
    update(cache, state(0, LEADER_DURING_DELETE), topic="a")
    assert cache.topic_name(TOPIC_ID) == "b"


def test_an_id_names_its_topic_and_no_earlier_id_does() -> None:
    cache = MetadataCache(1)
    update(cache, state(0, 1))
    update(cache, state(0, 1), topic_id=bytes(range(16, 32)))
    assert cache.topic_name(TOPIC_ID) is None
    assert cache.topic_name(bytes(range(16, 32))) == "t"
