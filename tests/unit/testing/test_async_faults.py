from __future__ import annotations

import asyncio

import pytest

from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import AsyncBroker
from tests.support.async_test import async_test
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build


def find_coordinator(address: str) -> int:
    host, _, port = address.rpartition(":")
    with RawClient(host, int(port)) as client:
        answer = client.call(build(ApiKey.FIND_COORDINATOR, key="g"), 1)
    code: int = answer.error_code  # type: ignore[attr-defined]
    return code


@async_test
async def test_faults_are_awaited() -> None:
    async with AsyncBroker() as broker:
        address = broker.bootstrap_servers
        async with broker.faults.coordinator_not_available(name="moved") as fault:
            assert await asyncio.to_thread(find_coordinator, address) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            await fault.wait_called()
        await fault.assert_called(times=1)
        assert await fault.call_count() == 1
        assert [call.rule for call in await fault.calls()] == ["moved"]
        assert await broker.faults.rules() == []
        record = await broker.faults.record()
        await broker.faults.clear()

        await broker.faults.replay(record)
        assert await asyncio.to_thread(find_coordinator, address) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await broker.faults.assert_replayed()
        await broker.faults.clear()

        kept = await broker.faults.add("error", code="REBALANCE_IN_PROGRESS", api="FindCoordinator")
        await kept.disable()
        assert await asyncio.to_thread(find_coordinator, address) != ErrorCode.REBALANCE_IN_PROGRESS
        await kept.assert_not_called()
        await kept.enable()
        assert await asyncio.to_thread(find_coordinator, address) == ErrorCode.REBALANCE_IN_PROGRESS
        await kept.remove()
        with pytest.raises(RuleError):
            broker.faults.add("explode")
        with pytest.raises(AttributeError):
            broker.faults.explode()
        assert "not_leader" in dir(broker.faults)
