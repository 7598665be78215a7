"""A broker for tests on its event loop: start, answers to questions, stop; the same in a thread and in a process."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from odradek.broker.machine.startup_error import StartupError
from odradek.controller.znodes.registration import RegistrationRefused
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.log_dir import LogDirError
from odradek.testing.node.ports import BrokerStopped, Started
from odradek.testing.node.running.running_broker import RunningBroker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.node.questions.questions import QuestionFunction

logger = logging.getLogger(__name__)


class NodeService:
    """One broker, from `start` to the end of `serve`."""

    def __init__(self, settings: Mapping[str, str], loop: asyncio.AbstractEventLoop) -> None:
        self._broker = RunningBroker(settings, loop, self._failed)
        self._stopping: asyncio.Future[None] = loop.create_future()
        self._is_serving = False
        self._answering: set[asyncio.Task[object]] = set()
        self._failure: str | None = None

    @property
    def why_stopped(self) -> str:
        return self._failure or "The broker does not run"

    async def start(self) -> Started:
        """Raises: StartupError with one line for operators."""
        try:
            await self._broker.start()
        except StartupError:
            raise
        except (ConfigError, LogDirError, RegistrationRefused, OSError) as error:
            raise StartupError(" ".join(str(error).split())) from error
        self._is_serving = True
        server = self._broker.server
        return Started(self._broker.addresses, server.cluster_id, server.broker_id)

    async def answer(self, function: QuestionFunction, arguments: Mapping[str, object]) -> object:
        """Run a question. Raises: what it raises, or BrokerStopped if the broker is stopped meanwhile."""
        if not self._is_serving:
            raise BrokerStopped(self.why_stopped)
        task = asyncio.ensure_future(_run(function, self._broker, arguments))
        self._answering.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._is_serving:
                raise BrokerStopped(self._failure or "The broker was stopped before it answered") from None
            raise
        finally:
            task.cancel()
            self._answering.discard(task)

    def stop_soon(self) -> None:
        if not self._stopping.done():
            self._stopping.set_result(None)

    def _failed(self, error: BaseException) -> None:
        """The broker cannot go on, for example without a log directory: it is stopped, as `odradek serve` ends then."""
        logger.critical("The broker cannot go on: %s", error)
        self._failure = f"The broker has failed: {error}"
        self.stop_soon()

    async def serve(self) -> None:
        """Serve until `stop_soon`, or until the broker fails; then stop it."""
        await self._stopping
        self._is_serving = False
        for task in self._answering:
            task.cancel()
        await asyncio.sleep(0)
        await self._broker.stop()


async def _run(function: QuestionFunction, broker: RunningBroker, arguments: Mapping[str, object]) -> object:
    return await function(broker, **arguments)
