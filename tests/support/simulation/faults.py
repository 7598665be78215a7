"""The faults of a simulated cluster: a schedule that the seed draws.

Each seed first draws the kinds of faults and how often they come: a run in which only links are cut tests links more
deeply than one in which everything breaks at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from odradek.protocol.api import ApiKey
from tests.support.simulation.broker import REQUEST_TIMEOUT_MS
from tests.support.simulation.environment.tree_server import ZOOKEEPER

if TYPE_CHECKING:
    from tests.support.simulation.broker import SimulatedBroker
    from tests.support.simulation.environment.network import Network
    from tests.support.simulation.oracle import Oracle


DELICATE: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.UPDATE_METADATA,
    ApiKey.ALTER_PARTITION,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)


class Faults:
    """See the module. `note` writes into the trace, `decide` makes the controller send a new state of a partition."""

    def __init__(
        self,
        brokers: list[SimulatedBroker],
        network: Network,
        oracle: Oracle,
        rng: Random,
        note: Callable[[str], None],
        decide: Callable[[], object],
    ) -> None:
        self._brokers = brokers
        self._network = network
        self._oracle = oracle
        self._rng = rng
        self._note = note
        self._decide = decide
        kinds: dict[str, Callable[[], None]] = {
            "crash": self._crash,
            "crash the controller": self._crash_the_controller,
            "crash all": self._crash_all,
            "lose power": self._lose_power,
            "outdate the controller": self._outdate_the_controller,
            "hold decisions back": self._hold_decisions_back,
            "stop": self._stop,
            "pause": self._pause,
            "cut": self._cut,
            "isolate": self._isolate,
            "cut from the tree": self._cut_from_the_tree,
            "expire": self._expire,
            "slow": self._slow,
            "delicate moment": self._at_a_delicate_moment,
        }
        chosen = rng.sample(sorted(kinds), rng.choice((1, 2, 3, 5, len(kinds))))
        self._kinds = [kinds[name] for name in chosen]
        if "lose power" in chosen:
            for broker in brokers:
                broker.keep_synced()
        self._interval_ms = rng.choice((500, 1_500, 4_000))
        self._healing: dict[Callable[[], None], None] = {}
        note(f"faults: {', '.join(chosen)}; about every {self._interval_ms} ms")

    async def run(self, duration_ms: int) -> None:
        loop = self._network.loop
        end_us = loop.now_us + duration_ms * 1000
        while loop.now_us < end_us:
            await asyncio.sleep(self._rng.randint(1, 2 * self._interval_ms) / 1000)
            self._rng.choice(self._kinds)()
        self._network.on_request.clear()
        for heal in list(self._healing):
            heal()

    # Kinds

    def _crash(self) -> None:
        self._crash_and_restart(self._rng.choice(self._brokers))

    def _crash_the_controller(self) -> None:
        controller = self._controller()
        if controller is not None:
            self._crash_and_restart(controller)

    def _controller(self) -> SimulatedBroker | None:
        """A broker that takes itself for the controller."""
        for broker in self._brokers:
            if broker.services is not None and broker.services.controller.is_active:
                return broker
        return None

    def _crash_all(self) -> None:
        for broker in self._brokers:
            self._crash_and_restart(broker)

    def _crash_and_restart(self, broker: SimulatedBroker) -> None:
        broker.crash()
        self._restart_later(broker)

    def _lose_power(self) -> None:
        """Of a single broker: acknowledged records are only sure to be on the disks of the others."""
        if all(broker.is_serving for broker in self._brokers):
            broker = self._rng.choice(self._brokers)
            self._note(f"{broker.name} loses its power")
            others = [other.services for other in self._brokers if other is not broker and other.services is not None]
            self._oracle.lost_power(broker.id, [services.replica_manager for services in others])
            broker.lose_power()
            self._restart_later(broker)

    def _outdate_the_controller(self) -> None:
        """The requests of one decision arrive long after another controller has been elected."""
        controller = self._controller()
        if controller is None:
            return
        others = [broker for broker in self._brokers if broker is not controller]
        self._cut_while(10_000, *((controller.name, other.name) for other in others))
        self._rng.choice((self._crash_and_restart, self._expire_one))(self._rng.choice(others))

        def replace() -> None:
            self._cut_from_the_tree_while(8_000, [controller])
            self._expire_one(controller)

        loop = self._network.loop
        loop.call_later(self._rng.randint(1, 1_500) / 1000, replace, context=loop.world.context)

    def _hold_decisions_back(self) -> None:
        """One broker gets several decisions at once, and later the first of them again."""
        controller = self._controller()
        if controller is None or not all(broker.is_serving for broker in self._brokers):
            return
        one = self._rng.choice([broker for broker in self._brokers if broker is not controller])
        self._cut_while(8_000, (controller.name, one.name), ms_min=REQUEST_TIMEOUT_MS)
        loop = self._network.loop
        for delay_ms in (0, 500, 1_000, 1_500):
            loop.call_later(delay_ms / 1000, self._decide, context=loop.world.context)

    def _stop(self) -> None:
        broker = self._rng.choice(self._brokers)
        broker.stop()
        self._restart_later(broker)

    def _restart_later(self, broker: SimulatedBroker) -> None:
        """Start it again when it is down. The simulation repeats a start that fails."""
        broker.restart_not_before_us = self._network.loop.now_us + self._rng.randint(0, 12_000) * 1000

    def _pause(self) -> None:
        broker = self._rng.choice(self._brokers)
        broker.pause()
        self._later(8_000, broker.resume)

    def _cut(self) -> None:
        one, other = (broker.name for broker in self._rng.sample(self._brokers, 2))
        self._cut_directions((one, other))

    def _isolate(self) -> None:
        """Cut a broker off from all others, but not from the tree and the clients: it becomes a stale leader."""
        name = self._rng.choice(self._brokers).name
        self._cut_directions(*((name, other.name) for other in self._brokers if other.name != name))

    def _cut_directions(self, *pairs: tuple[str, str]) -> None:
        is_one_way = self._rng.random() < 0.4
        self._cut_while(8_000, *(pairs if is_one_way else (*pairs, *((target, source) for source, target in pairs))))

    def _cut_while(self, ms_max: int, *directions: tuple[str, str], ms_min: int = 1) -> None:
        self._note(f"cut: {', '.join('->'.join(direction) for direction in directions)}")
        self._network.cut(*directions)
        self._later(ms_max, lambda: self._heal(directions), ms_min)

    def _heal(self, directions: tuple[tuple[str, str], ...]) -> None:
        self._note(f"healed: {', '.join('->'.join(direction) for direction in directions)}")
        self._network.heal(*directions)

    def _cut_from_the_tree(self) -> None:
        is_for_all = self._rng.random() < 0.2
        self._cut_from_the_tree_while(8_000, self._brokers if is_for_all else [self._rng.choice(self._brokers)])

    def _cut_from_the_tree_while(self, ms_max: int, brokers: list[SimulatedBroker]) -> None:
        for broker in brokers:
            self._note(f"{broker.name} cut from the tree")
            self._network.cut((broker.name, ZOOKEEPER))
            if broker.life is not None and broker.life.tree is not None:
                broker.life.tree.cut_off()

        def heal() -> None:
            for broker in brokers:
                self._note(f"{broker.name} reaches the tree again")
                self._network.heal((broker.name, ZOOKEEPER))
                if broker.life is not None and broker.life.tree is not None:
                    broker.life.tree.join()

        self._later(ms_max, heal)

    def _expire(self) -> None:
        self._expire_one(self._rng.choice(self._brokers))

    def _expire_one(self, broker: SimulatedBroker) -> None:
        if broker.life is not None and broker.life.tree is not None:
            self._note(f"the session of {broker.name} ends")
            broker.life.tree.expire()

    def _slow(self) -> None:
        network = self._network
        network.loss, network.long_delay = self._rng.choice(((0.02, 0.1), (0.0, 0.4), (0.1, 0.0)))
        self._note(f"loss {network.loss}, long delays {network.long_delay}")

        def heal() -> None:
            network.loss = network.long_delay = 0.0

        self._later(5_000, heal)

    def _at_a_delicate_moment(self) -> None:
        """Another of the faults, right after a request that changes a leader or an ISR; or its sender dies."""
        kind = self._rng.choice(self._kinds)
        is_for_asker = self._rng.random() < 0.5

        def strike(asker: str) -> None:
            asking = [broker for broker in self._brokers if broker.name == asker]
            if is_for_asker and asking:
                self._crash_and_restart(asking[0])
            else:
                kind()

        self._network.on_request[self._rng.choice(DELICATE)] = strike

    def _later(self, ms_max: int, heal: Callable[[], None], ms_min: int = 1) -> None:
        """Heal after a while, or when the schedule ends."""

        def once() -> None:
            if self._healing.pop(once, 0) is None:
                heal()

        self._healing[once] = None
        self._network.loop.call_later(
            self._rng.randint(ms_min, ms_max) / 1000, once, context=self._network.loop.world.context
        )
