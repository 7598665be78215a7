"""`AsyncBroker`: `Broker` for coroutines. The broker has a thread or a process of its own here, too.

So code of a test that blocks its event loop does not hold the broker up.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Self

from odradek.testing.assertions.broker_assertions import AsyncBrokerAssertions
from odradek.testing.broker import Broker
from odradek.testing.clock import AsyncBrokerClock
from odradek.testing.first_imports import without_collections

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from odradek.testing.async_faults import AsyncBrokerFaults
    from odradek.testing.node.settings import SettingValue


class AsyncBroker(AsyncBrokerAssertions):
    """The methods of `Broker`, to be awaited."""

    def __init__(
        self, config: Mapping[str, SettingValue] | None = None, *, own_process: bool = False, **configs: SettingValue
    ) -> None:
        """As `Broker`."""
        self._broker = Broker(config, own_process=own_process, **configs)

    @classmethod
    def of(cls, broker: Broker) -> AsyncBroker:
        """The same broker for coroutines: who starts or stops one of the two starts or stops the other."""
        other = cls()
        other._broker = broker
        return other

    async def start(self) -> Self:
        """Start; clients are served when it returns. Raises: StartupError with one line that says why it cannot."""
        with without_collections("odradek.broker.server"):
            starting = self._broker._start_soon()
            try:
                self._broker._serves(await asyncio.wrap_future(starting))
            except BaseException:
                await self.stop()
                raise
        return self

    async def stop(self) -> None:
        """Stop and remove the data. Does nothing if the broker does not run."""
        stopping = self._broker._stop_soon()
        if stopping is not None:
            await asyncio.wrap_future(stopping)

    async def reset(self) -> None:
        """As `Broker.reset`."""
        await self.ask("reset")

    @cached_property
    def faults(self) -> AsyncBrokerFaults:
        """Faults on command."""
        from odradek.testing.async_faults import AsyncBrokerFaults

        return AsyncBrokerFaults(self.ask)

    @property
    def clock(self) -> AsyncBrokerClock:
        """The broker's clock."""
        return AsyncBrokerClock(self)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first listener."""
        return self._broker.bootstrap_servers

    @property
    def addresses(self) -> dict[str, str]:
        """`host:port` by the name of the listener."""
        return self._broker.addresses

    async def ask(self, name: str, /, **arguments: object) -> object:
        """Ask a question of the broker (`testing/node/questions/`) and wait for the value."""
        return await asyncio.wrap_future(self._broker.ask_soon(name, **arguments))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()
