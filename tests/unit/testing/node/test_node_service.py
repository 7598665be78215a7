from __future__ import annotations

import asyncio

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.testing.node.node_service import NodeService
from odradek.testing.node.ports import BrokerStopped
from odradek.testing.node.questions.questions import find
from odradek.testing.node.settings import broker_settings
from tests.support.testing import asking  # noqa: F401 - registers the questions


def test_a_question_is_not_answered_before_the_start_nor_after_the_stop() -> None:
    async def test() -> None:
        service = NodeService(broker_settings({}, {}), asyncio.get_running_loop())
        with pytest.raises(BrokerStopped):
            await service.answer(find("process_id"), {})
        await service.start()
        waiting = asyncio.ensure_future(service.answer(find("never_answered"), {}))
        await asyncio.sleep(0)
        service.stop_soon()
        service.stop_soon()
        await service.serve()
        for answer in (waiting, service.answer(find("process_id"), {})):
            with pytest.raises(BrokerStopped):
                await answer

    asyncio.run(test())


def test_the_error_of_a_question_that_waits_says_why_the_broker_has_failed() -> None:
    async def test() -> None:
        service = NodeService(broker_settings({}, {}), asyncio.get_running_loop())
        await service.start()
        waiting = asyncio.ensure_future(service.answer(find("never_answered"), {}))
        await asyncio.sleep(0)
        service._failed(OSError("the disk is gone"))
        await service.serve()
        for answer in (waiting, service.answer(find("process_id"), {})):
            with pytest.raises(BrokerStopped, match="The broker has failed: the disk is gone"):
                await answer

    asyncio.run(test())


def test_an_error_of_the_configuration_is_one_line() -> None:
    async def test() -> None:
        service = NodeService(broker_settings({}, {"log_retention_ms": "a\nb"}), asyncio.get_running_loop())
        with pytest.raises(StartupError) as raised:
            await service.start()
        assert "\n" not in str(raised.value)

    asyncio.run(test())
