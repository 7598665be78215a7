from __future__ import annotations

from typing import cast

import pytest

from odradek.controller.channels import OnResponse
from odradek.controller.controllership import CREATION, DATA_CHANGE, Controllership
from odradek.controller.events import (
    BrokerModifications,
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    PartitionModifications,
    TopicChange,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.controller_config import ControllerConfig
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.request_batch import ControlRequest
from odradek.controller.tree.metadata_tree import Watcher, WatchEvent, WatchEventType
from odradek.controller.znodes.election import Elected
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_states import broker, shown
from tests.support.in_process.loop_turns import most_in_a_turn

ELECTED = Elected(epoch=7, epoch_zk_version=12)
PARTITION = TopicPartition("t", 0)


class _Channel:
    """Keeps requests, and lets the test answer them."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, ControlRequest, OnResponse]] = []

    def send(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        self.sent.append((broker_id, request, callback))


class _Tree:
    """The part of a metadata client that sets watches."""

    def __init__(self) -> None:
        self.watchers: dict[str, Watcher] = {}

    async def watch_existence(self, path: str, watcher: Watcher) -> bool:
        self.watchers[path] = watcher
        return True


class _ActiveController(Controllership):
    """Broker 0 as the active controller of brokers 0, 1 and 2."""

    def __init__(self) -> None:
        self.tree = _Tree()
        self.requests = _Channel()
        self.events: list[ControllerEvent] = []
        client = cast("MetadataClient", self.tree)
        config = ControllerConfig(broker_id=0)
        super().__init__(config, ELECTED, client, self.requests, self.events.append)  # type: ignore[arg-type]
        self.context.set_live_brokers({broker(broker_id): 100 + broker_id for broker_id in range(3)})

    def lead(self, partition: TopicPartition, leader: int) -> None:
        self.context.all_topics.add(partition.topic)
        self.context.update_assignment(partition, ReplicaAssignment((leader,)))
        leadership = LeaderAndIsr(leader=leader, isr=(leader,))
        self.context.put_leadership(partition, LeaderIsrAndControllerEpoch(leadership, ELECTED.epoch))

    @property
    def receivers(self) -> list[int]:
        return [broker_id for broker_id, _, _ in self.requests.sent]


def stop_replicas(*partitions: TopicPartition, delete: bool = True) -> StopReplicaRequest:
    return StopReplicaRequest(
        topic_states=[
            StopReplicaTopicState(
                topic_name=partition.topic,
                partition_states=[
                    StopReplicaPartitionState(partition_index=partition.partition, delete_partition=delete)
                ],
            )
            for partition in partitions
        ]
    )


def stopped(*errors: tuple[TopicPartition, int], error_code: int = 0) -> StopReplicaResponse:
    return StopReplicaResponse(
        error_code=error_code,
        partition_errors=[
            StopReplicaPartitionError(topic_name=p.topic, partition_index=p.partition, error_code=code)
            for p, code in errors
        ],
    )


# -- start


def test_starts_with_epoch_and_fencing_token_only() -> None:
    controllership = _ActiveController()
    assert (controllership.context.epoch, controllership.context.epoch_zk_version, controllership.fence) == (7, 12, 12)
    assert controllership.context.all_topics == set()
    assert not controllership.is_over
    assert controllership.requests.sent == []


def test_two_controllerships_share_no_state() -> None:
    first, second = _ActiveController(), _ActiveController()
    first.lead(PARTITION, 1)
    first.batch.add_update_metadata([1], [PARTITION])
    assert second.context.leadership(PARTITION) is None
    assert second.batch.is_empty


# -- watches


def test_watcher_is_an_event_for_the_changes_it_was_set_for() -> None:
    controllership = _ActiveController()
    watcher = controllership.watch(TopicChange(), CREATION)
    for kind in WatchEventType:
        watcher(WatchEvent(kind, "/x"))
    assert controllership.events == [TopicChange()]


def test_watchers_of_one_event_are_one_to_the_tree() -> None:
    """The tree calls equal watchers once; what differs in event or kind of change must stay apart."""
    controllership = _ActiveController()
    assert len({controllership.topic_watcher("t"), controllership.topic_watcher("t")}) == 1
    assert len({controllership.topic_watcher("t"), controllership.topic_watcher("u")}) == 2
    assert len({controllership.watch(TopicChange(), CREATION), controllership.watch(TopicChange(), DATA_CHANGE)}) == 2


def test_topic_is_watched_for_new_partitions_and_not_for_its_end() -> None:
    controllership = _ActiveController()
    watcher = controllership.topic_watcher("t")
    watcher(WatchEvent(WatchEventType.DELETED, "/brokers/topics/t"))
    assert controllership.events == []
    watcher(WatchEvent(WatchEventType.CHANGED, "/brokers/topics/t"))
    assert controllership.events == [PartitionModifications("t")]


@async_test
async def test_brokers_are_watched_for_new_registrations() -> None:
    controllership = _ActiveController()
    await controllership.watch_brokers([1, 2])
    assert set(controllership.tree.watchers) == {"/brokers/ids/1", "/brokers/ids/2"}
    watcher = controllership.tree.watchers["/brokers/ids/2"]
    watcher(WatchEvent(WatchEventType.DELETED, "/brokers/ids/2"))  # the list of brokers is watched for that
    assert controllership.events == []
    watcher(WatchEvent(WatchEventType.CHANGED, "/brokers/ids/2"))
    assert controllership.events == [BrokerModifications(2)]


# -- requests


@async_test
async def test_batch_is_sent_once() -> None:
    controllership = _ActiveController()
    controllership.lead(PARTITION, 1)
    controllership.batch.add_update_metadata([1, 2], [PARTITION])
    await controllership.send_batch()
    assert controllership.receivers == [1, 2]
    assert shown(controllership.requests.sent[0][1]).startswith("t-0 leader 1")
    assert controllership.batch.is_empty
    await controllership.send_batch()
    assert len(controllership.requests.sent) == 2


@async_test
async def test_update_metadata_tells_chosen_brokers_of_chosen_partitions() -> None:
    controllership = _ActiveController()
    controllership.lead(PARTITION, 1)
    await controllership.send_update_metadata([2], [PARTITION])
    await controllership.send_update_metadata([2])
    first, second = (request for _, request, _ in controllership.requests.sent)
    assert isinstance(first, UpdateMetadataRequest)
    assert isinstance(second, UpdateMetadataRequest)
    assert controllership.receivers == [2, 2]
    assert (first.controller_id, first.controller_epoch) == (0, 7)
    assert [topic.topic_name for topic in first.topic_states] == ["t"]
    assert second.topic_states == []
    assert {live.id for live in second.live_brokers} == {0, 1, 2}


@async_test
async def test_update_metadata_to_all_reaches_brokers_that_are_shutting_down() -> None:
    controllership = _ActiveController()
    controllership.context.shutting_down_broker_ids.add(2)
    controllership.context.remove_live_brokers([1])
    await controllership.send_update_metadata_to_all()
    assert sorted(controllership.receivers) == [0, 2]


@async_test
async def test_what_is_told_of_many_partitions_is_put_together_with_turns_for_others() -> None:
    controllership = _ActiveController()
    partitions = [TopicPartition("t", index) for index in range(4 * ITEMS_A_TURN)]
    for partition in partitions:
        controllership.lead(partition, 1)
    told = controllership.batch._update_metadata
    assert (
        await most_in_a_turn(controllership.send_update_metadata([2], partitions), lambda: len(told))
        <= 2 * ITEMS_A_TURN
    )
    (request,) = (request for _, request, _ in controllership.requests.sent)
    assert isinstance(request, UpdateMetadataRequest)
    assert [len(topic.partition_states) for topic in request.topic_states] == [4 * ITEMS_A_TURN]


# -- answers


def test_answers_become_events_of_the_broker_that_gave_them() -> None:
    controllership = _ActiveController()
    controllership.send([(1, LeaderAndIsrRequest()), (2, UpdateMetadataRequest())])
    leader_and_isr, update_metadata = LeaderAndIsrResponse(), UpdateMetadataResponse()
    controllership.requests.sent[1][2](update_metadata)
    controllership.requests.sent[0][2](leader_and_isr)
    second, first = controllership.events
    assert isinstance(second, UpdateMetadataResponseReceived)
    assert isinstance(first, LeaderAndIsrResponseReceived)
    assert (second.broker_id, second.response) == (2, update_metadata)
    assert (first.broker_id, first.response) == (1, leader_and_isr)


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (LeaderAndIsrRequest(), LeaderAndIsrResponse()),
        (UpdateMetadataRequest(), UpdateMetadataResponse()),
        (stop_replicas(PARTITION), stopped((PARTITION, 0))),
    ],
)
def test_response_after_the_resignation_is_dropped(request_: ControlRequest, response: object) -> None:
    controllership = _ActiveController()
    controllership.context.topics_with_deletion_started.add("t")
    controllership.send([(1, request_)])
    controllership.is_over = True
    controllership.requests.sent[0][2](response)  # type: ignore[arg-type]
    assert controllership.events == []


def test_answer_for_replicas_to_delete_names_what_was_deleted_and_what_failed() -> None:
    controllership = _ActiveController()
    controllership.context.topics_with_deletion_started.add("t")
    other = TopicPartition("t", 1)
    controllership.send([(1, stop_replicas(PARTITION, other))])
    controllership.requests.sent[0][2](stopped((PARTITION, 0), (other, 56), error_code=3))
    (event,) = controllership.events
    assert isinstance(event, TopicDeletionStopReplicaResponseReceived)
    assert (event.broker_id, event.error_code) == (1, 3)
    assert event.partition_errors == {PARTITION: 0, other: 56}


@pytest.mark.parametrize(
    ("request_", "deleting"),
    [
        (stop_replicas(PARTITION, delete=False), {"t"}),  # a replica that merely stops, of a reassignment
        (stop_replicas(PARTITION), {"u"}),  # a replica that is dropped, of a topic that stays
        (stop_replicas(TopicPartition("t", 1)), {"t"}),  # not what the answer is about
    ],
)
def test_answer_about_anything_else_than_a_topics_deletion_is_no_event(
    request_: StopReplicaRequest, deleting: set[str]
) -> None:
    controllership = _ActiveController()
    controllership.context.topics_with_deletion_started |= deleting
    controllership.send([(1, request_)])
    controllership.requests.sent[0][2](stopped((PARTITION, 0)))
    assert controllership.events == []


def test_topic_must_still_be_in_deletion_when_the_answer_comes() -> None:
    controllership = _ActiveController()
    controllership.send([(1, stop_replicas(PARTITION))])
    answer = controllership.requests.sent[0][2]
    answer(stopped((PARTITION, 0)))
    assert controllership.events == []
    controllership.context.topics_with_deletion_started.add("t")
    answer(stopped((PARTITION, 0)))
    assert len(controllership.events) == 1
