"""`AsyncBroker`: `Broker` for coroutines. The broker has a thread or a process of its own here, too.

So code of a test that blocks its event loop does not hold the broker up.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Self

from odradek.testing.assertions.broker_assertions import AsyncBrokerAssertions
from odradek.testing.clock import AsyncBrokerClock
from odradek.testing.first_imports import without_collections
from odradek.testing.node.making import make_node
from odradek.testing.node.ports import BrokerStopped, Node, Started
from odradek.testing.node.questions import lifecycle  # noqa: F401 - registers its questions
from odradek.testing.node.settings import broker_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from odradek.testing.async_faults import AsyncBrokerFaults
    from odradek.testing.broker import Broker
    from odradek.testing.node.settings import SettingValue


class AsyncBroker(AsyncBrokerAssertions):
    """The methods of `Broker`, to be awaited."""

    def __init__(
        self, config: Mapping[str, SettingValue] | None = None, *, own_process: bool = False, **configs: SettingValue
    ) -> None:
        """As `Broker`."""
        self._settings = broker_settings(config, configs)
        self._own_process = own_process
        self._node: Node | None = None
        self._started: Started | None = None

    @classmethod
    def of(cls, broker: Broker) -> AsyncBroker:
        """The same running broker for coroutines; `broker` stops it."""
        other = cls()
        other._node, other._started = broker._node, broker._started
        return other

    async def start(self) -> Self:
        """Start; clients are served when it returns. Raises: StartupError with one line that says why it cannot."""
        if self._node is not None:
            raise RuntimeError("the broker has been started already")
        try:
            with without_collections("odradek.broker.server"):
                self._node = make_node(self._settings, own_process=self._own_process)
                self._started = await asyncio.wrap_future(self._node.start())
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """Stop and remove the data. Does nothing if the broker does not run."""
        node, self._node, self._started = self._node, None, None
        if node is not None:
            await asyncio.wrap_future(node.stop())

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
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """`host:port` by the name of the listener."""
        if self._started is None:
            raise BrokerStopped("The broker does not run")
        return dict(self._started.addresses)

    async def ask(self, name: str, /, **arguments: object) -> object:
        """Ask a question of the broker (`testing/node/questions/`) and wait for the value."""
        if self._node is None:
            raise BrokerStopped("The broker does not run")
        return await asyncio.wrap_future(self._node.submit(name, arguments))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()
