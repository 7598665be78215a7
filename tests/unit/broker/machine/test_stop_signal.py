from __future__ import annotations

import asyncio
import os
import signal

import pytest

from odradek.broker.machine.stop_signal import stop_signal
from tests.support.async_test import async_test


@async_test
async def test_the_first_signal_asks_for_a_stop_and_the_second_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    handlers: dict[signal.Signals, object] = {}
    monkeypatch.setattr(loop, "add_signal_handler", lambda number, handler, *args: handlers.update({number: handler}))
    killed: list[int] = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(number))
    stop = stop_signal()
    received = handlers[signal.SIGTERM]
    received(signal.SIGTERM)  # type: ignore[operator]
    assert stop.done()
    assert killed == []
    received(signal.SIGTERM)  # type: ignore[operator]
    assert killed == [signal.SIGTERM]
    assert signal.SIGINT in handlers
