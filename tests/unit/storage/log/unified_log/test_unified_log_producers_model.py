from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.producers.producer_state import BATCHES_RETAINED
from tests.support.disks.logs import Disk, append, read_all
from tests.support.loads.producer_model import Answer, ProducerModel, Sent

PRODUCERS = st.integers(0, 1)


class ProducersAgainstModel(RuleBasedStateMachine):
    """Random and repeated batches of two producers, rolls and restarts: results and log equal the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="odradek-producers-")
        self.models = [ProducerModel(), ProducerModel()]
        self.values: list[bytes] = []
        self.was_killed = False
        """The log has been read again: it may know more than the model, which has forgotten at a clean restart."""

    @initialize()
    def open(self) -> None:
        self.log = Disk(Path(self.directory.name)).log()
        for producer in range(len(self.models)):
            self.send(producer, Sent(0, 1))

    def send(self, producer: int, batch: Sent) -> None:
        model = self.models[producer]
        before = model.written.get(batch)
        expected = [model.append(batch, len(self.values))]
        if self.was_killed and before is not None and batch.epoch == model.epoch:
            expected.append(Answer(ErrorCode.NONE, before))
        values = [b"%d/%d/%d" % (producer, batch.epoch, batch.sequence + number) for number in range(batch.count)]
        who = {"producer_id": producer, "producer_epoch": batch.epoch, "base_sequence": batch.sequence}
        try:
            found = Answer(ErrorCode.NONE, append(self.log, *values, **who))
        except KafkaError as error:
            found = Answer(error.code, -1)
        assert found in expected
        if found.offset == len(self.values):
            self.values += values

    @rule(producer=PRODUCERS, counts=st.lists(st.integers(1, 3), min_size=1, max_size=5), data=st.data())
    def next_batches_in_any_order(self, producer: int, counts: list[int], data: st.DataObject) -> None:
        model = self.models[producer]
        sequence = model.next_sequence
        batches = []
        for count in counts:
            batches.append(Sent(sequence, count, model.epoch))
            sequence += count
        for batch in [*data.draw(st.permutations(batches)), *batches]:
            self.send(producer, batch)

    @invariant()
    def earlier_batches_again(self) -> None:
        for producer, model in enumerate(self.models):
            for batch in list(model.written)[-BATCHES_RETAINED - 2 :]:
                self.send(producer, batch)

    @rule(producer=PRODUCERS, count=st.integers(1, 3), delta=st.integers(-3, 3))
    def a_batch_that_overlaps_or_leaves_a_gap(self, producer: int, count: int, delta: int) -> None:
        model = self.models[producer]
        self.send(producer, Sent(max(0, model.next_sequence + delta), count, model.epoch))

    @rule(producer=PRODUCERS, sequence=st.sampled_from([0, 0, 1]))
    def a_new_epoch(self, producer: int, sequence: int) -> None:
        self.send(producer, Sent(sequence, 1, self.models[producer].epoch + 1))

    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size:
            self.log.roll()

    @rule()
    def restart_cleanly(self) -> None:
        self.log.close()
        self.log = Disk(Path(self.directory.name)).log(clean=True, recovery_point=self.log.log_end_offset)
        self.was_killed = False
        for model in self.models:
            model.restart(1)

    @rule(flushed=st.floats(0, 1))
    def restart_after_kill(self, flushed: float) -> None:
        self.log.discard()
        self.log = Disk(Path(self.directory.name)).log(recovery_point=int(len(self.values) * flushed))
        self.was_killed = True

    @rule()
    def what_is_read_is_what_was_accepted(self) -> None:
        assert [record.value for record in read_all(self.log)] == self.values

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.what_is_read_is_what_was_accepted()
            self.log.close()
        self.directory.cleanup()


TestProducersAgainstModel = ProducersAgainstModel.TestCase
TestProducersAgainstModel.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
