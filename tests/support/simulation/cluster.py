"""One run of a simulation: a seed, a cluster of whole brokers, clients, faults, and the oracle that watches.

`Simulation(seed, directory).run()` does the same for the same seed, to the last frame, in every process with the same
PYTHONHASHSEED (see `__main__.py`). The trace lists the events; the error of a violation ends with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.simulation.broker import SimulatedBroker
from tests.support.simulation.committed import Violation, read
from tests.support.simulation.environment.network import Network
from tests.support.simulation.environment.tree_server import TreeServer
from tests.support.simulation.environment.virtual_loop import VirtualLoop
from tests.support.simulation.faults import Faults
from tests.support.simulation.load import Client, Producer, Reader
from tests.support.simulation.operator import BRIEF, Operator
from tests.support.simulation.oracle import NotJudged, Oracle

BROKERS: Final = (1, 2, 3)
PARTITIONS: Final = tuple(TopicPartition("topic", index) for index in range(2))
START_MS_MAX: Final = 30_000
FAULTS_MS: Final = 15_000
CONVERGENCE_MS_MAX: Final = 60_000
RESTART_CHECK_MS: Final = 250
RESTART_BACKOFF_MS: Final = 1_000
"""The time until a broker that refused to start is started again."""
TRACE_LINES_SHOWN: Final = 120


class Simulation:
    """See the module."""

    topic_configs: Mapping[str, str] = {}

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.trace: list[str] = []
        self.outcome = ""
        rng = Random(seed)
        settings = {"replica.fetch.max.bytes": rng.choice(("1", "1048576"))}
        self.loop = VirtualLoop(Random(rng.random()))
        self.network = Network(self.loop, Random(rng.random()))
        self.tree = TreeServer(self.network)
        self.oracle = Oracle(self.tree, self.note)
        self.brokers = [
            SimulatedBroker(broker_id, directory / f"broker{broker_id}", self.network, self.tree, self.note, settings)
            for broker_id in BROKERS
        ]
        clients = (self.network, BROKERS, self.oracle)
        self.admin = Client("admin", *clients, Random(rng.random()))
        self.producers = [
            Producer(
                f"p{number}",
                *clients,
                Random(rng.random()),
                partitions=PARTITIONS,
                is_idempotent=number % 2 == 1,
            )
            for number in range(3)
        ]
        self.operator = Operator(
            "o0", *clients, Random(rng.random()), partitions=PARTITIONS, tree=self.tree, note=self.note
        )
        self.operators = [self.operator] * rng.choice((0, 1))
        self.brief_producers = [
            Producer("brief", *clients, Random(rng.random()), partitions=[BRIEF], is_idempotent=False)
            for _ in self.operators
        ]
        if not self.operators:
            # One that comes in after the replica was deleted would make it anew, as in Apache.
            self.network.late = frozenset((ApiKey.LEADER_AND_ISR, ApiKey.ALTER_PARTITION))
        self.readers = [Reader("r0", *clients, Random(rng.random()), partitions=PARTITIONS)]
        self._rng = rng

    def note(self, text: str) -> None:
        self.trace.append(f"{self.loop.now_us / 1e6:10.6f} {text}")

    @property
    def clients(self) -> list[Client]:
        return [*self.producers, *self.brief_producers, *self.operators, *self.readers]

    def run(self) -> None:
        """Raises: Violation, or what a bug raised."""
        with _Errors(self.note) as errors:
            try:
                self._run()
            except NotJudged as end:
                self.outcome = f"not judged: {end}"
            finally:
                self.note(self.outcome)
                self.note(f"frames {self.network.frames} digest {self.network.digest:08x}")
                self._end()
            if errors.found:
                raise Violation("\n".join(errors.found))

    def _run(self) -> None:
        operator = self.operator
        faults = Faults(
            self.brokers,
            self.network,
            self.oracle,
            self._rng,
            self.note,
            decide=lambda: operator.start(operator.reorder()),
        )
        for broker in self.brokers:
            self._start(broker)
        self._keep_up()
        self._wait_for(self.admin.start(self._create_topic()), START_MS_MAX)
        for client in self.clients:
            client.start(client.run())
        self._wait_for(self.loop.start(faults.run(FAULTS_MS), self.loop.world.context.copy()), FAULTS_MS * 2)
        self._heal()
        for client in self.clients:
            client.is_stopping = True
        deadline_us = self.loop.now_us + CONVERGENCE_MS_MAX * 1000
        while self._what_is_missing():
            if self.loop.now_us >= deadline_us:
                raise Violation(f"after {CONVERGENCE_MS_MAX} ms: {self._what_is_missing()}")
            self._pass(100)
        self._check_logs()
        self.outcome = f"converged; {sum(producer.acknowledged for producer in self.producers)} records acknowledged"

    def _wait_for(self, task: asyncio.Task[None], within_ms: int) -> None:
        deadline_us = self.loop.now_us + within_ms * 1000
        while not self.loop.run_until(lambda: task.done() or bool(self.loop.failures), deadline_us):
            raise Violation(f"{task} takes longer than {within_ms} ms")
        self._raise_failures()
        task.result()

    def _pass(self, ms: int) -> None:
        self.loop.run_until(lambda: bool(self.loop.failures), self.loop.now_us + ms * 1000)
        self._raise_failures()

    def _raise_failures(self) -> None:
        for failure in self.loop.failures:
            if isinstance(failure, BaseException):
                raise failure
            raise Violation(failure)

    def _start(self, broker: SimulatedBroker) -> None:
        """Begin a life. The oracle looks after each of its turns."""
        broker.start()
        life = broker.life
        assert life is not None

        def look() -> None:
            try:
                self.oracle.look(broker, life)
            except (Violation, NotJudged) as end:
                self.loop.failures.append(end)

        life.machine.after_turn = look

    def _keep_up(self) -> None:
        """Start brokers that are down, now and until the end of the simulation."""
        for broker in self.brokers:
            if broker.life is None and self.loop.now_us >= broker.restart_not_before_us:
                self._start(broker)
                broker.restart_not_before_us = self.loop.now_us + RESTART_BACKOFF_MS * 1000
        self.loop.call_later(RESTART_CHECK_MS / 1000, self._keep_up, context=self.loop.world.context)

    def _heal(self) -> None:
        self.note("everything is healed")
        self.network.heal()
        self.network.loss = self.network.long_delay = 0.0
        for broker in self.brokers:
            broker.restart_not_before_us = 0
            broker.resume()
            if broker.life is not None and broker.life.tree is not None:
                broker.life.tree.join()

    async def _create_topic(self) -> None:
        topic = CreatableTopic(
            name="topic",
            num_partitions=len(PARTITIONS),
            replication_factor=len(BROKERS),
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in self.topic_configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
        while True:
            await self.admin.pause(200)
            answer = await self.admin.ask(BROKERS[0], MetadataRequest(topics=[]), MetadataResponse, 12)
            if answer is None or len(answer.brokers) < len(BROKERS):
                continue
            created = await self.admin.ask(answer.controller_id, request, CreateTopicsResponse, 7, 10_000)
            if created is not None and created.topics[0].error_code == 0:
                return

    # The end

    def _what_is_missing(self) -> str:
        """The reasons why the cluster has not converged yet; empty when it has."""
        for client in (*self.producers, *self.brief_producers, *self.operators):
            if not client.is_idle:
                return f"{client.name} still waits for an answer"
        for broker in self.brokers:
            if not broker.is_serving:
                return f"{broker.name} is not up"
        for partition in (*PARTITIONS, BRIEF):
            replicas = self.oracle.replicas(partition)
            missing = self._what_is_left_of(partition) if replicas is None else self._what_is_missing_in(partition)
            if missing:
                return f"{partition}: {missing}"
        return ""

    def _what_is_left_of(self, partition: TopicPartition) -> str:
        """Of one that was deleted, or never there."""
        for broker in self.brokers:
            services = broker.services
            if services is None or services.replica_manager.hosted(partition) is not None:
                return f"{broker.name} hosts it"
            if services.metadata_cache.contains(partition.topic):
                return f"{broker.name} knows it"
        return ""

    def _what_is_missing_in(self, partition: TopicPartition) -> str:
        state = self.oracle.partition_state(partition)
        if state is None or state.leader_and_isr.leader < 0:
            return f"no leader: {state}"
        replicas = self.oracle.replicas(partition)
        if replicas is None or replicas.is_being_reassigned or sorted(replicas.replicas) != list(BROKERS):
            return f"is reassigned: {replicas}"
        if sorted(state.leader_and_isr.isr) != list(BROKERS):
            return f"not all in sync: {state}"
        end = self.oracle.committed[partition].end
        for broker in self.brokers:
            services = broker.services
            hosted = None if services is None else services.replica_manager.hosted(partition)
            if hosted is None or hosted.log is None:
                return f"{broker.name} does not host it"
            if hosted.leader_id != state.leader_and_isr.leader:
                return f"{broker.name} knows {hosted.leader_id} as leader, the tree {state}"
            if not end == hosted.log.log_end_offset == hosted.log.high_watermark:
                log = hosted.log
                return f"{broker.name} is at {log.log_end_offset} with HW {log.high_watermark}, committed {end}"
            cached = services.metadata_cache.partition_state(*partition)
            if cached is None or cached.leader != state.leader_and_isr.leader:
                return f"the metadata of {broker.name} says {cached}"
        return ""

    def _check_logs(self) -> None:
        for partition in PARTITIONS:
            contents = {self._log_bytes(broker, partition) for broker in self.brokers}
            if len(contents) != 1:
                raise Violation(f"{partition}: the replicas differ")
            log = self.brokers[0].services.replica_manager.hosted(partition).log
            values = [value for batch in read(log, 0, log.log_end_offset) for value in batch.values]
            for offset, value in self.oracle.acknowledged.get(partition, {}).items():
                if values[offset] != value:
                    raise Violation(f"{partition}: {value} was acknowledged at {offset}, where {values[offset]} is")
            for producer in self.producers:
                if producer.is_idempotent:
                    prefix = f"{producer.name}-".encode()
                    own = [value for value in values if value.startswith(prefix)]
                    if own != producer.sent[partition]:
                        raise Violation(
                            f"{partition}: {producer.name} sent {producer.sent[partition]}, there are {own}"
                        )

    def _log_bytes(self, broker: SimulatedBroker, partition: TopicPartition) -> bytes:
        log = broker.services.replica_manager.hosted(partition).log
        return b"".join(file.read_bytes() for file in sorted(Path(log.dir).glob("*.log")))

    def _end(self) -> None:
        """Close the files. The rest stays in memory until the process ends: see `VirtualLoop.kill`."""
        for broker in self.brokers:
            broker.crash()

    def story(self) -> str:
        """The end of the trace."""
        return "\n".join(deque(self.trace, TRACE_LINES_SHOWN))


class _Errors(logging.Handler):
    """Bugs that were caught and logged are failures as well."""

    def __init__(self, note: object) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        self._note(text)
        if record.exc_info is not None and not isinstance(record.exc_info[1], OSError):
            self.found.append(text)

    def __enter__(self) -> _Errors:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
