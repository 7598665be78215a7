from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import cast

import pytest

from odradek.broker.security.tokens.token_expiry import TokenExpiry
from odradek.broker.security.tokens.token_manager import DelegationTokenManager
from odradek.controller.tree.metadata_tree import ConnectionLoss
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


class Manager:
    rounds = 0

    async def expire_tokens(self) -> None:
        self.rounds += 1
        if self.rounds == 1:
            raise ConnectionLoss("/delegation_token")


def test_rounds_while_the_broker_is_the_controller(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    manager = Manager()

    def in_background(work: Coroutine[object, object, None]) -> None:
        asyncio.run(cast("Coroutine[None, None, None]", work))

    def advance(ms: int) -> int:
        clock.advance(ms)
        timer.advance()
        return manager.rounds

    expiry = TokenExpiry(cast("DelegationTokenManager", manager), timer, 1000, in_background)
    expiry.stop()  # as a broker that stops and never was the controller
    expiry.start()
    assert advance(0) == 1
    assert "the next round tries again" in caplog.text
    assert advance(999) == 1
    assert advance(1) == 2
    expiry.stop()
    assert advance(5000) == 2
    expiry.start()
    assert advance(0) == 3
