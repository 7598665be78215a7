from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import AsyncBroker, Broker
from odradek.testing.scenarios.scenario import Scenario
from tests.support.async_test import async_test
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as served:
        yield served


def heartbeat(address: str) -> int:
    host, _, port = address.rpartition(":")
    with RawClient(host, int(port)) as client:
        answer = client.call(build(ApiKey.HEARTBEAT, group_id="g", member_id="m"), 4)
    code: int = answer.error_code  # type: ignore[attr-defined]
    return code


RULES: list[dict[str, object]] = [
    {"action": "error", "code": "REBALANCE_IN_PROGRESS", "api": "Heartbeat", "times": 1},
    {"action": "error", "code": "FENCED_INSTANCE_ID", "api": "Heartbeat", "times": 1},
]


def test_rules_come_one_after_the_other_and_end_with_the_block(broker: Broker) -> None:
    with Scenario(broker, RULES) as scenario:
        assert heartbeat(broker.bootstrap_servers) == ErrorCode.REBALANCE_IN_PROGRESS
        with pytest.raises(AssertionError, match="The fault error changed no request"):
            scenario.assert_called()
        assert heartbeat(broker.bootstrap_servers) == ErrorCode.FENCED_INSTANCE_ID
    scenario.assert_called()
    assert broker.faults.rules() == []


def test_a_block_that_fails_ends_the_scenario_too(broker: Broker) -> None:
    with pytest.raises(ZeroDivisionError), Scenario(broker, RULES, full=True):
        _ = 1 / 0
    assert broker.faults.rules() == []
    assert broker.ask("disk_state") == (False, 0)


def test_a_rule_that_cannot_be_read_is_refused_at_once(broker: Broker) -> None:
    with pytest.raises(RuleError):
        Scenario(broker, [{"action": "explode"}])


@async_test
async def test_it_is_the_same_for_coroutines() -> None:
    async with AsyncBroker() as broker:
        address = broker.bootstrap_servers
        async with Scenario(broker, RULES, sync_ms=5) as scenario:
            assert await broker.ask("disk_state") == (False, 5)
            assert await asyncio.to_thread(heartbeat, address) == ErrorCode.REBALANCE_IN_PROGRESS
            with pytest.raises(AssertionError):
                await scenario.assert_called_async()
            assert await asyncio.to_thread(heartbeat, address) == ErrorCode.FENCED_INSTANCE_ID
        await scenario.assert_called_async()
        assert await broker.faults.rules() == []
        assert await broker.ask("disk_state") == (False, 0)


def test_a_scenario_that_is_refused_changes_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.faults.faults.MAX_RULES", 1)
    with pytest.raises(RuleError), Scenario(broker, RULES, full=True):
        pass
    assert broker.ask("disk_state") == (False, 0)
    assert broker.faults.rules() == []


def test_a_block_may_stop_the_broker() -> None:
    with Broker() as stopped, Scenario(stopped, RULES):
        stopped.stop()

    async def test() -> None:
        async with AsyncBroker() as stopped, Scenario(stopped, RULES):
            await stopped.stop()

    asyncio.run(test())
