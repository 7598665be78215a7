"""The coordinator against a model that knows nothing of logs, epochs of leaders and callbacks.

Producers come, write, commit, abort, go on and return as zombies; time passes; the coordinator is restarted, moves
away, and its log and the leaders of partitions refuse for a while. The model follows the answers. What must hold: an answer
follows from the model's state; a producer that was shut out changes nothing; every transaction that was decided gets
exactly the markers of its outcome in all its partitions, with an epoch no lower than that of its records; and nothing
stays undecided longer than the time-out and a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.transaction_transcript import Transcript

IDS = ("a", "b", "c")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(4))
PASSING_ERRORS = ("NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT")
TIMEOUT_MS = 30_000
SWEEP_MS = 10_000
S = TransactionState
E = ErrorCode


@dataclass
class Model:
    """One transactional id as a client could know it."""

    producer: ProducerIdAndEpoch | None = None
    past: list[ProducerIdAndEpoch] = field(default_factory=list)
    partitions: set[TopicPartition] = field(default_factory=set)
    outcome: bool | None = None
    """How the last transaction ended; None before the first, and while one is open."""
    is_open: bool = False


class CoordinatorMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = Transcript()
        self.models = {name: Model() for name in IDS}
        self.markers_seen = 0
        self.is_away = False

    # -- what producers do -----------------------------------------------------------------------------------

    @rule(name=st.sampled_from(IDS))
    def init(self, name: str) -> None:
        model = self.models[name]
        error, producer = self._init(name, None)
        if self.is_away:
            assert error == E.NOT_COORDINATOR
        elif model.is_open:
            # Shut out and aborted; the answer to the next one gives the epoch after.
            assert error == E.CONCURRENT_TRANSACTIONS
            self._aborted(model)
        else:
            assert error == E.NONE
            self._is_now(model, producer)

    @rule(name=st.sampled_from(IDS))
    def go_on(self, name: str) -> None:
        """KIP-360: present what one has."""
        model = self.models[name]
        if model.producer is None or self.is_away:
            return
        error, producer = self._init(name, model.producer)
        if model.is_open:
            assert error == E.CONCURRENT_TRANSACTIONS
            self._aborted(model)
        else:
            assert error == E.NONE
            self._is_now(model, producer)

    @rule(name=st.sampled_from(IDS), added=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def add(self, name: str, added: set[TopicPartition]) -> None:
        model = self.models[name]
        if model.producer is None:
            return
        error = self._add(name, model.producer, added)
        if self.is_away:
            assert error == E.NOT_COORDINATOR
            return
        assert error == E.NONE
        if not model.is_open:
            model.is_open, model.partitions, model.outcome = True, set(), None
        model.partitions |= added

    @rule(name=st.sampled_from(IDS), committed=st.booleans())
    def end(self, name: str, committed: bool) -> None:
        model = self.models[name]
        if model.producer is None:
            return
        error = self._end(name, model.producer, committed)
        if self.is_away:
            assert error == E.NOT_COORDINATOR
        elif model.is_open:
            assert error == E.NONE
            model.is_open, model.outcome = False, committed
        else:
            assert error == (E.NONE if model.outcome is committed else E.INVALID_TXN_STATE)

    @rule(name=st.sampled_from(IDS), which=st.integers(0, 50), committed=st.booleans())
    def zombie(self, name: str, which: int, committed: bool) -> None:
        """Whoever was told an earlier epoch may change nothing."""
        model = self.models[name]
        if not model.past or self.is_away:
            return
        zombie = model.past[which % len(model.past)]
        assert self._add(name, zombie, {PARTITIONS[0]}) == E.PRODUCER_FENCED
        assert self._end(name, zombie, committed) == E.PRODUCER_FENCED
        verified = self.world.coordinator.verify_partitions(name, zombie, list(PARTITIONS))
        assert set(verified.values()) == {E.PRODUCER_FENCED}

    @rule(name=st.sampled_from(IDS))
    def verify(self, name: str) -> None:
        model = self.models[name]
        if model.producer is None or self.is_away:
            return
        verified = self.world.coordinator.verify_partitions(name, model.producer, list(PARTITIONS))
        inside = model.partitions if model.is_open else set()
        assert verified == {tp: E.NONE if tp in inside else E.TRANSACTION_ABORTABLE for tp in PARTITIONS}

    # -- what befalls the coordinator ------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.world.run("restart")
        self.is_away = False

    @rule()
    def move(self) -> None:
        self.world.run("elect" if self.is_away else "resign")
        self.is_away = not self.is_away

    @rule(
        name=st.sampled_from(IDS),
        committed=st.booleans(),
        error=st.sampled_from(["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"]),
    )
    def the_log_refuses(self, name: str, committed: bool, error: str) -> None:
        """Nothing has happened, and it can be done again."""
        model = self.models[name]
        if model.producer is None or self.is_away or not model.is_open:
            return
        self.world.run(f"fail log {error}")
        assert self._end(name, model.producer, committed) == E.COORDINATOR_NOT_AVAILABLE
        assert self._add(name, model.producer, set(PARTITIONS) - model.partitions) in (
            E.COORDINATOR_NOT_AVAILABLE,
            E.NONE,  # there was nothing to add
        )
        self.world.run("fail log NONE")

    @rule(name=st.sampled_from(IDS), committed=st.booleans(), partition=st.sampled_from(PARTITIONS))
    def a_leader_is_away_for_a_while(self, name: str, committed: bool, partition: TopicPartition) -> None:
        model = self.models[name]
        if model.producer is None or self.is_away or not model.is_open:
            return
        self.world.run(f"leader {partition} none")
        self.end(name, committed)
        if partition in model.partitions:
            assert self._add(name, model.producer, {partition}) == E.CONCURRENT_TRANSACTIONS
        self.world.run(f"leader {partition} 0")
        self.world.run("wait 100ms")

    @precondition(lambda self: not self.is_away)
    @rule()
    def time_passes(self) -> None:
        """Longer than a transaction may take: all that are open are aborted, and their producers shut out."""
        self.world.pass_time(TIMEOUT_MS + 2 * SWEEP_MS)
        for model in self.models.values():
            if model.is_open:
                self._aborted(model)

    # -- what must hold --------------------------------------------------------------------------------------

    @invariant()
    def every_decision_is_told_to_every_partition(self) -> None:
        for _, request in self.world.channel.sent[self.markers_seen :]:
            for marker in request.markers:
                (model,) = [m for m in self.models.values() if m.producer and m.producer[0] == marker.producer_id]
                assert marker.transaction_result is model.outcome
                assert model.producer is not None
                assert marker.producer_epoch >= max(
                    (p.producer_epoch for p in model.past if p.producer_id == marker.producer_id), default=0
                )
                told = {
                    TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
                }
                assert told <= model.partitions
        self.markers_seen = len(self.world.channel.sent)

    @invariant()
    def nothing_is_left_half_done(self) -> None:
        if self.is_away:
            return
        for metadata in self.world.coordinator.states.transactions:
            model = self.models[metadata.transactional_id]
            assert metadata.pending_state is None
            if model.is_open:
                assert (metadata.state, metadata.topic_partitions) == (S.ONGOING, model.partitions)
            else:
                assert metadata.state in (S.EMPTY, S.COMPLETE_COMMIT if model.outcome else S.COMPLETE_ABORT)
        assert self.world.coordinator.markers.pending_count == 0

    # -- requests --------------------------------------------------------------------------------------------

    def _init(self, name: str, presented: ProducerIdAndEpoch | None) -> tuple[ErrorCode, ProducerIdAndEpoch]:
        answers: list[tuple[ErrorCode, ProducerIdAndEpoch]] = []
        self.world.coordinator.init_producer_id(name, TIMEOUT_MS, presented, lambda *answer: answers.append(answer))
        (answer,) = answers
        return answer

    def _add(self, name: str, producer: ProducerIdAndEpoch, added: set[TopicPartition]) -> ErrorCode:
        answers: list[ErrorCode] = []
        self.world.coordinator.add_partitions(name, producer, added, answers.append)
        (answer,) = answers
        return answer

    def _end(self, name: str, producer: ProducerIdAndEpoch, committed: bool) -> ErrorCode:
        answers: list[ErrorCode] = []
        self.world.coordinator.end_transaction(name, producer, committed, answers.append)
        (answer,) = answers
        return answer

    @staticmethod
    def _is_now(model: Model, producer: ProducerIdAndEpoch) -> None:
        if model.producer is not None:
            assert producer > model.producer
            model.past.append(model.producer)
        model.producer, model.outcome, model.partitions = producer, None, set()

    @staticmethod
    def _aborted(model: Model) -> None:
        """By another than its producer, who is shut out thereby."""
        assert model.producer is not None
        model.past.append(model.producer)
        model.producer = model.producer._replace(producer_epoch=model.producer.producer_epoch + 1)
        model.is_open, model.outcome = False, False


CoordinatorMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestCoordinator = CoordinatorMachine.TestCase
