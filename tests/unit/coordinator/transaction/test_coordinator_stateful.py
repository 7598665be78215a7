"""The coordinator against a model that knows nothing of logs, epochs of leaders and callbacks.

Producers come, write, commit, abort, go on and return as zombies; time passes; the coordinator is restarted, moves away
and comes back, and its log and the leaders of partitions refuse for a while. The model follows the answers. What must
hold: an answer follows from the model's state; a producer that was shut out changes nothing; markers tell what was
decided, with an epoch no lower than that of any record; every decision is carried out once its way is free; and nothing
stays undecided longer than the time-out and a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.transcripts.transaction_transcript import Transcript

IDS = ("a", "b", "c")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(4))
PASSING_ERRORS = ("NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT")
TIMEOUT_MS = 30_000
SWEEP_MS = 10_000
ids = st.sampled_from(IDS)
S = TransactionState
E = ErrorCode


@dataclass
class Model:
    """One transactional id as a client could know it."""

    producer: ProducerIdAndEpoch
    past: list[ProducerIdAndEpoch] = field(default_factory=list)
    partitions: set[TopicPartition] = field(default_factory=set)
    outcome: bool | None = None
    """How the last transaction ended; None before the first, and while one is open."""
    is_open: bool = False


class CoordinatorMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = Transcript()
        self.models: dict[str, Model] = {}
        self.markers_seen = 0
        for name in IDS:
            error, producer = self._init(name, None)
            assert error == E.NONE
            self.models[name] = Model(producer)

    # -- what producers do -----------------------------------------------------------------------------------

    @rule(name=ids, goes_on=st.booleans())
    def init(self, name: str, goes_on: bool) -> None:
        """A new one, or one that presents what it has (KIP-360)."""
        model = self.models[name]
        error, producer = self._init(name, model.producer if goes_on else None)
        if model.is_open:
            # Shut out and aborted; the answer to the next one gives the epoch after.
            assert error == E.CONCURRENT_TRANSACTIONS
            self._aborted(model)
            return
        assert error == E.NONE
        assert producer > model.producer
        model.past.append(model.producer)
        model.producer, model.outcome, model.partitions = producer, None, set()

    @rule(name=ids, added=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def add(self, name: str, added: set[TopicPartition]) -> None:
        model = self.models[name]
        assert self._add(name, model.producer, added) == E.NONE
        if not model.is_open:
            model.is_open, model.partitions, model.outcome = True, set(), None
        model.partitions |= added

    @rule(name=ids, committed=st.booleans())
    def end(self, name: str, committed: bool) -> None:
        model = self.models[name]
        error = self._end(name, model.producer, committed)
        if model.is_open:
            assert error == E.NONE
            model.is_open, model.outcome = False, committed
        else:
            assert error == (E.NONE if model.outcome is committed else E.INVALID_TXN_STATE)

    @rule(name=ids, which=st.integers(0, 50), committed=st.booleans())
    def zombie(self, name: str, which: int, committed: bool) -> None:
        """Whoever was told an earlier epoch may change nothing."""
        model = self.models[name]
        if model.past:
            zombie = model.past[which % len(model.past)]
            assert self._add(name, zombie, {PARTITIONS[0]}) == E.PRODUCER_FENCED
            assert self._end(name, zombie, committed) == E.PRODUCER_FENCED
            verified = self.world.coordinator.verify_partitions(name, zombie, list(PARTITIONS))
            assert set(verified.values()) == {E.PRODUCER_FENCED}

    @rule(name=ids)
    def verify(self, name: str) -> None:
        model = self.models[name]
        verified = self.world.coordinator.verify_partitions(name, model.producer, list(PARTITIONS))
        inside = model.partitions if model.is_open else set()
        assert verified == {tp: E.NONE if tp in inside else E.TRANSACTION_ABORTABLE for tp in PARTITIONS}

    # -- what befalls the coordinator ------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.world.run("restart")

    @rule(name=ids, committed=st.booleans())
    def move(self, name: str, committed: bool) -> None:
        """Nobody is served while the coordinator is elsewhere; when it is back nothing has changed."""
        self.world.run("resign")
        producer = self.models[name].producer
        assert self._init(name, None)[0] == E.NOT_COORDINATOR
        assert self._add(name, producer, {PARTITIONS[0]}) == E.NOT_COORDINATOR
        assert self._end(name, producer, committed) == E.NOT_COORDINATOR
        self.world.run("elect")

    @rule(name=ids, committed=st.booleans(), answered=st.booleans())
    def the_coordinator_dies_between_decision_and_markers(self, name: str, committed: bool, answered: bool) -> None:
        """The next one writes them; those that were under way may have arrived too."""
        self.world.run("hold markers")
        self.end(name, committed)
        self.world.run("restart")
        self.world.run("release markers" if answered else "release markers unanswered")
        self.world.run("wait 100ms")

    @rule(name=ids, committed=st.booleans(), error=st.sampled_from(PASSING_ERRORS))
    def the_log_refuses(self, name: str, committed: bool, error: str) -> None:
        """Nothing has happened, and it can be done again."""
        model = self.models[name]
        added = set(PARTITIONS) - model.partitions
        self.world.run(f"fail log {error}")
        if model.is_open:
            assert self._end(name, model.producer, committed) == E.COORDINATOR_NOT_AVAILABLE
        if added or not model.is_open:
            assert self._add(name, model.producer, added) == E.COORDINATOR_NOT_AVAILABLE
        self.world.run("fail log NONE")

    @rule(name=ids, committed=st.booleans(), partition=st.sampled_from(PARTITIONS))
    def a_leader_is_away_for_a_while(self, name: str, committed: bool, partition: TopicPartition) -> None:
        model = self.models[name]
        self.world.run(f"leader {partition} none")
        is_decided_now = model.is_open
        self.end(name, committed)
        if is_decided_now and partition in model.partitions:
            assert self._add(name, model.producer, {partition}) == E.CONCURRENT_TRANSACTIONS
        self.world.run(f"leader {partition} 0")
        self.world.run("wait 100ms")

    @rule()
    def time_passes(self) -> None:
        """Longer than a transaction may take: all that are open are aborted, and their producers shut out."""
        self.world.pass_time(TIMEOUT_MS + 2 * SWEEP_MS)
        for model in self.models.values():
            if model.is_open:
                self._aborted(model)

    # -- what must hold --------------------------------------------------------------------------------------

    @invariant()
    def markers_tell_the_decision(self) -> None:
        for _, request in self.world.channel.sent[self.markers_seen :]:
            for marker in request.markers:
                (model,) = [found for found in self.models.values() if found.producer.producer_id == marker.producer_id]
                assert marker.transaction_result is model.outcome
                assert marker.producer_epoch >= max((past.producer_epoch for past in model.past), default=0)
                for topic in marker.topics:
                    told = {TopicPartition(topic.name, index) for index in topic.partition_indexes}
                    assert told <= model.partitions
        self.markers_seen = len(self.world.channel.sent)

    @invariant()
    def nothing_is_left_half_done(self) -> None:
        found = {metadata.transactional_id: metadata for metadata in self.world.coordinator.states.transactions}
        assert set(found) == set(IDS)
        for name, model in self.models.items():
            metadata = found[name]
            assert metadata.pending_state is None
            assert metadata.topic_partitions == (model.partitions if model.is_open else set())
            if model.is_open:
                assert metadata.state is S.ONGOING
            elif model.outcome is None:
                assert metadata.state is S.EMPTY
            else:
                assert metadata.state is (S.COMPLETE_COMMIT if model.outcome else S.COMPLETE_ABORT)
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
    def _aborted(model: Model) -> None:
        """By another than its producer, who is shut out thereby."""
        model.past.append(model.producer)
        model.producer = model.producer._replace(producer_epoch=model.producer.producer_epoch + 1)
        model.is_open, model.outcome = False, False


CoordinatorMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestCoordinator = CoordinatorMachine.TestCase
