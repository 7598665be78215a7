"""A broker that is alone asks itself."""

from __future__ import annotations

from typing import Any, cast

from odradek.broker.own_controller import OwnController
from odradek.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from tests.support.async_test import async_test


class Controller:
    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        assert version == 3
        return AlterPartitionResponse(error_code=request.broker_id)


@async_test
async def test_alter_partition_is_answered_by_the_controller_of_this_broker() -> None:
    way = OwnController(cast("Any", Controller()))
    answer = await way.ask(AlterPartitionRequest(broker_id=41), AlterPartitionResponse, timeout_ms=None)
    assert answer.error_code == 41
