from __future__ import annotations

import asyncio

from odradek.testing.node.questions.lifecycle import reset
from odradek.testing.node.running.running_broker import RunningBroker


def test_reset_resets_the_broker() -> None:
    class Recorded(RunningBroker):
        resets = 0

        async def reset(self) -> None:
            self.resets += 1

    async def test() -> None:
        broker = Recorded({}, asyncio.get_running_loop())
        await reset(broker)
        assert broker.resets == 1

    asyncio.run(test())
