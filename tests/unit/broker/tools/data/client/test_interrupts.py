from __future__ import annotations

import os
import signal

import pytest

from odradek.broker.tools.command.socket_loop import Event, spawn
from odradek.broker.tools.data.client.interrupts import Interrupted, Interrupts
from tests.support.virtual_test import loop_test


async def five() -> int:
    return 5


@loop_test
async def test_work_that_is_not_interrupted() -> None:
    assert await Interrupts().during(five()) == 5


@loop_test
async def test_a_signal_cancels_the_work_and_lets_it_clean_up() -> None:
    interrupts = Interrupts()
    steps = []

    async def work() -> None:
        try:
            await Event().wait()
        finally:
            steps.append("cleaned up")

    async def kill() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with interrupts.installed():
        spawn(kill())
        with pytest.raises(Interrupted, match="SIGTERM") as caught:
            await interrupts.during(work())
    assert caught.value.status == 143
    assert steps == ["cleaned up"]


@loop_test
async def test_work_after_a_signal_is_not_begun_in_earnest() -> None:
    interrupts = Interrupts()
    interrupts.note(signal.SIGINT)
    with pytest.raises(Interrupted) as caught:
        await interrupts.during(Event().wait())
    assert caught.value.status == 130


@loop_test
async def test_an_error_of_the_work_is_not_hidden() -> None:
    interrupts = Interrupts()

    async def work() -> None:
        interrupts.note(signal.SIGINT)
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        await interrupts.during(work())


@loop_test
async def test_a_second_signal_ends_at_once() -> None:
    ended: list[int] = []
    patch = pytest.MonkeyPatch()
    patch.setattr("odradek.broker.tools.data.client.interrupts.os._exit", ended.append)
    try:
        interrupts = Interrupts()
        interrupts.note(signal.SIGINT)
        interrupts.note(signal.SIGINT)
    finally:
        patch.undo()
    assert ended == [130]
