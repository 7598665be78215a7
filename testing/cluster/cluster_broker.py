"""One broker of a cluster for tests. It keeps its id, port and data when it is stopped, killed and started again."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Self

from odradek.testing.broker import Broker
from odradek.testing.cluster import cluster_questions  # noqa: F401 - registers its questions
from odradek.testing.node.process_node import ProcessNode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from odradek.testing.node.ports import Started


class ClusterBroker(Broker):
    """Made by `Cluster`, which also stops it."""

    def __init__(self, broker_id: int, settings: Mapping[str, str], *, own_process: bool) -> None:
        super().__init__(settings, own_process=own_process)
        self.id = broker_id
        self.ports: tuple[int, ...] = ()
        """Of its listeners, also while it does not run: it keeps them."""
        self._is_paused = False

    def __repr__(self) -> str:
        return f"<broker {self.id}, {self.state}>"

    @property
    def state(self) -> str:
        """`running`, `paused` or `stopped`."""
        if self._node is None:
            return "stopped"
        return "paused" if self._is_paused else "running"

    @property
    def is_running(self) -> bool:
        """Whether it serves clients now."""
        return self.state == "running"

    def _serves(self, started: Started) -> None:
        """Keep the ports for the next start."""
        super()._serves(started)
        self.ports = tuple(int(address.rpartition(":")[2]) for address in started.addresses.values())
        listeners = (f"{name}://{address}" for name, address in started.addresses.items())
        self._settings["listeners"] = ",".join(listeners)

    def _stop_soon(self) -> Future[None] | None:
        """A controlled shutdown: the controller moves its leaderships away first."""
        self.resume()
        return super()._stop_soon()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def kill(self) -> None:
        """End the process at once (SIGKILL). Its session is not ended: `Cluster.kill` does that, too.

        Does nothing if the broker does not run. Raises: RuntimeError if it has no process of its own.
        """
        if self._node is None:
            return
        self._signal(signal.SIGKILL)
        self._is_paused = False
        self.stop()

    def pause(self) -> None:
        """Stop its process for now (SIGSTOP): connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        if self._is_paused:
            self._signal(signal.SIGCONT)
            self._is_paused = False

    def _signal(self, number: signal.Signals) -> None:
        if not isinstance(self._node, ProcessNode):
            raise RuntimeError(
                f"broker {self.id} does not run" if self._node is None else "this needs Cluster(own_process=True)"
            )
        self._node.send_signal(number)
