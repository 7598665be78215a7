"""The controller's way to the broker in its own process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.broker.inter_broker import OwnBroker
from odradek.controller.request_batch import ControlRequest
from odradek.coordinator.transaction.markers import NO_LEADER
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process_broker import InProcessBroker, in_process_broker

TYPES = (LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path) as broker:
        yield broker


def own(broker: InProcessBroker) -> OwnBroker:
    own = OwnBroker()
    own.serve(broker.services)
    return own


@pytest.mark.parametrize("request_type", TYPES)
@pytest.mark.parametrize(("controller_epoch", "error"), [(9, ErrorCode.NONE), (0, ErrorCode.STALE_CONTROLLER_EPOCH)])
def test_request_is_answered_as_over_the_wire(
    broker: InProcessBroker, request_type: type[ControlRequest], controller_epoch: int, error: ErrorCode
) -> None:
    request = request_type(controller_id=0, controller_epoch=controller_epoch)
    assert broker.run(own(broker).handle(request)).error_code == error


@pytest.mark.parametrize("request_type", TYPES)
def test_request_for_an_earlier_life_is_refused(broker: InProcessBroker, request_type: type[ControlRequest]) -> None:
    epoch = broker.services.controller.broker_epoch
    request = request_type(controller_id=0, controller_epoch=9, broker_epoch=epoch - 1)
    assert broker.run(own(broker).handle(request)).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_leaders_and_coordinators_are_those_of_the_metadata(broker: InProcessBroker) -> None:
    channel = own(broker)
    assert channel.leader_of(TopicPartition("t", 0)) == NO_LEADER, "the broker has been told of nothing yet"
    assert channel.coordinator_of("id") is None
    broker.create_topic("__transaction_state", configs={"cleanup.policy": "compact"})
    assert channel.leader_of(TopicPartition("t", 0)) is None, "it is deleted"
    broker.create_topic("t")
    assert channel.leader_of(TopicPartition("t", 0)) == broker.services.broker_id
    assert channel.coordinator_of("id") == broker.services.broker_id
    snapshot = broker.services.metadata_cache.snapshot
    broker.services.metadata_cache.snapshot = replace(snapshot, nodes={})
    assert channel.leader_of(TopicPartition("t", 0)) == NO_LEADER
    assert channel.coordinator_of("id") is None


def test_markers_and_questions_reach_the_handlers(broker: InProcessBroker) -> None:
    channel = own(broker)
    markers: list[WriteTxnMarkersResponse | None] = []
    channel.send_markers(0, WriteTxnMarkersRequest(), markers.append)
    assert markers == [WriteTxnMarkersResponse()]
    verified: list[AddPartitionsToTxnResponse | None] = []
    channel.send_verification(0, AddPartitionsToTxnRequest(), verified.append)
    assert verified == [AddPartitionsToTxnResponse()]
