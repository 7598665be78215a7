"""`Broker`: a real broker for a test, started and stopped by blocking calls.

with Broker() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Self

from odradek.testing.assertions.broker_assertions import BrokerAssertions
from odradek.testing.first_imports import without_collections
from odradek.testing.node.making import make_node
from odradek.testing.node.ports import BrokerStopped, Node, Started
from odradek.testing.node.questions import lifecycle  # noqa: F401 - registers its questions
from odradek.testing.node.settings import broker_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from types import TracebackType

    from odradek.testing.clock import BrokerClock
    from odradek.testing.faults import BrokerFaults
    from odradek.testing.node.settings import SettingValue


class Broker(BrokerAssertions):
    """A broker on a free port of 127.0.0.1, with its data in memory.

    By default it runs in a thread of this process; with `own_process` in a process of its own, which ends with this
    one. It may be started again after a stop: it is a new broker then, with another port.
    """

    def __init__(
        self, config: Mapping[str, SettingValue] | None = None, *, own_process: bool = False, **configs: SettingValue
    ) -> None:
        """`config` and keywords are configs of brokers: `{"log.retention.ms": 1000}` or `log_retention_ms=1000`."""
        self._settings = broker_settings(config, configs)
        self._own_process = own_process
        self._starting = Lock()
        self._node: Node | None = None
        self._started: Started | None = None

    def start(self) -> Self:
        """Start; clients are served when it returns. Raises: StartupError with one line that says why it cannot."""
        with without_collections("odradek.broker.server"):
            starting = self._start_soon()
            try:
                self._serves(starting.result())
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """Stop and remove the data. Does nothing if the broker does not run."""
        stopping = self._stop_soon()
        if stopping is not None:
            stopping.result()

    # The steps that `AsyncBroker` takes, too. They do not wait.

    def _start_soon(self) -> Future[Started]:
        with self._starting:
            if self._node is not None:
                raise RuntimeError("the broker has been started already")
            node = make_node(self._settings, own_process=self._own_process)
            starting = node.start()
            self._node = node
            return starting

    def _serves(self, started: Started) -> None:
        """To be called when the start is done."""
        self._started = started

    def _stop_soon(self) -> Future[None] | None:
        """None if the broker does not run."""
        node, self._node, self._started = self._node, None, None
        return None if node is None else node.stop()

    def reset(self) -> None:
        """Make the broker as new: topics, groups, transactions, configs and all else are gone, connections are closed.

        The port stays the same. Raises: RuntimeError for a broker with log.dirs or zookeeper.connect, which keeps its
        data.
        """
        self.ask("reset")

    @cached_property
    def faults(self) -> BrokerFaults:
        """Faults on command."""
        from odradek.testing.faults import BrokerFaults

        return BrokerFaults(self.ask)

    @property
    def clock(self) -> BrokerClock:
        """The broker's clock."""
        from odradek.testing.clock import BrokerClock

        return BrokerClock(self)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first listener."""
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """`host:port` by the name of the listener."""
        return dict(self._running.addresses)

    @property
    def _running(self) -> Started:
        if self._started is None:
            raise BrokerStopped("The broker does not run")
        return self._started

    def ask(self, name: str, /, **arguments: object) -> object:
        """Ask a question of the broker (`testing/node/questions/`) and wait for the value."""
        return self.ask_soon(name, **arguments).result()

    def ask_soon(self, name: str, /, **arguments: object) -> Future[object]:
        """The same without waiting. Raises: BrokerStopped, as the future may."""
        if self._node is None:
            raise BrokerStopped("The broker does not run")
        return self._node.submit(name, arguments)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
