"""The controller's way to the broker in its own process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.inter_broker import OwnBroker
from odradek.controller.request_batch import ControlRequest
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
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
