"""Clean stops in a simulated cluster: how long is a partition silent when a broker stops in order?

Each partition has a producer that waits for the acknowledgement of a batch before it sends the next, so nothing is
appended while a high watermark stays where it is. Nothing else is wrong: every link is quick, and one broker at a time
is stopped, every other time the controller, and started again when the others have been watched for a while.

With every other seed a broker that stops still follows the partitions that it has led: their new leaders wait for it at
first, and then have to continue without it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from tests.support.simulation.cluster import BROKERS, PARTITIONS, START_MS_MAX, Simulation
from tests.support.simulation.committed import Violation
from tests.support.simulation.load import Producer

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from tests.support.simulation.broker import SimulatedBroker

STOPS: Final = 4
PAUSE_MS_MAX: Final = 20
"""Between an acknowledgement and the next batch."""
DOWN_MS: Final = 2_000
UP_MS_MAX: Final = 30_000
SILENT_MS_MAX: Final = 1_000


class SteadyProducer(Producer):
    """`silence_ms`: the longest time without an acknowledgement; may be set back to 0."""

    retry_pause_ms = PAUSE_MS_MAX
    silence_ms = 0
    _acknowledged_ms = 0

    async def run(self) -> None:
        while not self.is_stopping:
            if self._producer_id < 0:
                await self._get_id()
            else:
                await self._send(self.partitions[0])
                self.look()
                self._acknowledged_ms = self._clock.monotonic_ms()
            await self.pause(PAUSE_MS_MAX)
        self.is_idle = True

    def look(self) -> None:
        self.silence_ms = max(self.silence_ms, self._clock.monotonic_ms() - self._acknowledged_ms)


class CleanStopSimulation(Simulation):
    """See the module."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed, directory)
        self.steady = [self._producer(partition) for partition in PARTITIONS]
        self.producers = [*self.steady]
        self.operators, self.brief_producers, self.readers = [], [], []

    def _producer(self, partition: TopicPartition) -> SteadyProducer:
        rng = Random(self._rng.random())
        return SteadyProducer(
            f"p{partition.partition}",
            self.network,
            BROKERS,
            self.oracle,
            rng,
            partitions=[partition],
            is_idempotent=True,
        )

    def _run(self) -> None:
        for broker in self.brokers:
            self._start(broker)
        self._keep_up()
        self._wait_for(self.admin.start(self._create_topic()), START_MS_MAX)
        for producer in self.steady:
            producer.start(producer.run())
        longest_ms = max(self._stop_one(number) for number in range(STOPS))
        self.outcome = f"silent for {longest_ms} ms at most"

    def _stop_one(self, number: int) -> int:
        """How long a partition was silent."""
        self._wait_until_complete()
        controllers = [broker for broker in self.brokers if broker.services and broker.services.controller.is_active]
        victim = controllers[0] if number % 2 == 0 else self._rng.choice(self.brokers)
        self._pass(self._rng.randint(1, DOWN_MS))
        for producer in self.steady:
            producer.silence_ms = 0
        self._stop(victim)
        self._pass(DOWN_MS)
        for producer in self.steady:
            producer.look()
            if producer.silence_ms > SILENT_MS_MAX:
                raise Violation(f"{producer.partitions[0]} was silent for {producer.silence_ms} ms")
        return max(producer.silence_ms for producer in self.steady)

    def _stop(self, broker: SimulatedBroker) -> None:
        broker.restart_not_before_us = self.loop.now_us + 2 * DOWN_MS * 1000
        if self.seed % 2 == 0 and broker.services is not None:
            broker.services.replica_manager.fetchers.begin_shutdown = lambda: None  # type: ignore[method-assign]
        broker.stop()

    def _wait_until_complete(self) -> None:
        """Every broker serves, and is in sync."""
        deadline_us = self.loop.now_us + UP_MS_MAX * 1000
        while missing := self._what_is_not_in_sync():
            if self.loop.now_us >= deadline_us:
                raise Violation(f"after {UP_MS_MAX} ms: {missing}")
            self._pass(100)

    def _what_is_not_in_sync(self) -> str:
        for broker in self.brokers:
            if not broker.is_serving:
                return f"{broker.name} is not up"
        for producer in self.steady:
            if not producer.acknowledged:
                return f"{producer.name} has not begun"
        for partition in PARTITIONS:
            state = self.oracle.partition_state(partition)
            if state is None or sorted(state.leader_and_isr.isr) != list(BROKERS):
                return f"{partition}: {state}"
        return ""
