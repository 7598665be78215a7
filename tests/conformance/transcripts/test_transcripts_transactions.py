"""What Apache Kafka answers in the life of a transaction: every request in every version, in time and out of place."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import control_record_type
from tests.conformance.transcripts.test_transcripts_produce import create, produce
from tests.support.transcripts.transcript import Plain, Transcript
from tests.support.waiting import eventually
from tests.support.wire.requests import OLD, batch, build

pytestmark = pytest.mark.oracle

TIMEOUT_MS = 60_000


class Producer:
    """A transactional producer that asks nothing of itself: ids, epochs and sequences are what the test says."""

    def __init__(self, t: Transcript, stem: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self._t = t
        self.name = t.name(stem)
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1

    def begin(self) -> Producer:
        """Take an id, and a new epoch, off the record."""
        answer: Any = self._t.until_accepted(self.init(), 4)
        assert answer.error_code == 0, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def init(self, timeout_ms: int | None = None, **producer: int) -> Request:
        timeout_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        return build(ApiKey.INIT_PRODUCER_ID, transactional_id=self.name, transaction_timeout_ms=timeout_ms, **producer)

    def fields(self, **changes: object) -> dict[str, object]:
        """Who it is."""
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch, **changes}

    def add(self, topic: str, *partitions: int, **changes: object) -> Request:
        who = {f"v3_and_below_{key}": value for key, value in self.fields(**changes).items()}
        topics = [{"name": topic, "partitions": list(partitions)}]
        return build(ApiKey.ADD_PARTITIONS_TO_TXN, **who, v3_and_below_topics=topics)

    def verify(self, topic: str, *partitions: int, verify_only: bool = True, **changes: object) -> Request:
        topics = [{"name": topic, "partitions": list(partitions)}]
        transaction = {**self.fields(**changes), "verify_only": verify_only, "topics": topics}
        return build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[transaction])

    def end(self, *, committed: bool, **changes: object) -> Request:
        return build(ApiKey.END_TXN, **self.fields(**changes), committed=committed)

    def add_offsets(self, group: str, **changes: object) -> Request:
        return build(ApiKey.ADD_OFFSETS_TO_TXN, **self.fields(**changes), group_id=group)

    def commit_offsets(self, group: str, topic: str, offset: int, *partitions: int, **changes: object) -> Request:
        offsets = [
            {"partition_index": partition, "committed_offset": offset, "committed_metadata": "m"}
            for partition in partitions or (0,)
        ]
        topics = [{"name": topic, "partitions": offsets}]
        return build(ApiKey.TXN_OFFSET_COMMIT, **self.fields(**changes), group_id=group, topics=topics)

    def records(self, topic: str, sequence: int, *values: bytes, epoch: int | None = None, **options: int) -> Request:
        records = batch(
            *values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=True,
            **options,
        )
        return produce(topic, records, transactional_id=self.name)

    def marker(self, topic: str, *partitions: int, committed: bool = True, epoch: int = 0, **changes: int) -> Request:
        topics = [{"name": topic, "partition_indexes": list(partitions)}]
        marker = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "transaction_result": committed,
            "topics": topics,
            "coordinator_epoch": epoch,
            **changes,
        }
        return build(ApiKey.WRITE_TXN_MARKERS, markers=[marker])

    def described(self) -> Request:
        return build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[self.name])

    def settle(self) -> None:
        """Wait until nothing is under way: Apache Kafka writes markers behind its answer."""

        def state() -> str:
            answer: Any = self._t.quietly(self.described(), 0)
            return str(answer.transaction_states[0].transaction_state)

        eventually(state, accept=lambda found: not found.startswith("Prepare"))


def note_log(t: Transcript, label: str, topic: str, *, isolation: int) -> None:
    """What a reader is given: offsets, and what lies between them."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    fetch = build(
        ApiKey.FETCH,
        max_wait_ms=100,
        min_bytes=1,
        isolation_level=isolation,
        topics=[{"topic": topic, "partitions": partitions}],
    )
    answer: Any = t.quietly(fetch, 11)
    ((data,),) = [entry.partitions for entry in answer.responses]
    found: list[Plain] = []
    for each in batches(memoryview(data.records)):
        kind = control_record_type(each)
        values: list[Plain] = (
            [(record.value or b"").decode() for record in each.records()] if kind is None else [kind.name]
        )
        found.append([each.base_offset, each.base_sequence, each.is_transactional, values])
    aborted = data.aborted_transactions
    t.note(
        label,
        {
            "error_code": data.error_code,
            "high_watermark": data.high_watermark,
            "last_stable_offset": data.last_stable_offset,
            "aborted": None if aborted is None else [entry.first_offset for entry in aborted],
            "batches": found,
        },
    )


def test_init_producer_id(transcript: Transcript) -> None:
    t = transcript
    producer = Producer(t, "inits").begin()
    t.sweep("again", range(6), lambda _: producer.init())
    for timeout_ms in (0, -1, 900_001):
        t.call(f"timeout {timeout_ms}", producer.init(timeout_ms), 4)
    t.call("the longest timeout", producer.init(900_000), 4)
    producer.begin()
    for version in (3, 4, 5):
        mine = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        t.call(f"with its own id and epoch v{version}", producer.init(**mine), version)
        t.call(f"the same again v{version}", producer.init(**mine), version)
        producer.epoch += 1
        old = {**mine, "producer_epoch": producer.epoch - 2}
        t.call(f"with an old epoch v{version}", producer.init(**old), version)
        t.call(f"with a later epoch v{version}", producer.init(**{**mine, "producer_epoch": 1000}), version)
        t.call(f"with another id v{version}", producer.init(producer_id=12345, producer_epoch=0), version)
    t.call("half a producer", producer.init(producer_id=5), 4)
    new = Producer(t, "newcomer")
    t.call("a new one that presents an id", new.init(producer_id=12345, producer_epoch=77), 4)


def test_add_partitions(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "added", 6)
    producer = Producer(t, "adds").begin()
    for version in range(4):
        t.call(f"add v{version}", producer.add(topic, version), version)
        t.call(f"again v{version}", producer.add(topic, version), version)
        t.call(f"another producer id v{version}", producer.add(topic, 0, producer_id=1), version)
        t.call(f"an old epoch v{version}", producer.add(topic, 0, producer_epoch=-1), version)
        t.call(f"a later epoch v{version}", producer.add(topic, 0, producer_epoch=9), version)
        t.call(f"an unknown id v{version}", producer.add(topic, 0, transactional_id=t.name("nobody")), version)
        t.call(f"an empty id v{version}", producer.add(topic, 0, transactional_id=""), version)
        t.call(f"a partition that is not v{version}", producer.add(topic, 4, 99), version)
        t.call(f"a topic that is not v{version}", producer.add(t.name("missing"), 0), version)
        t.call(f"an internal topic v{version}", producer.add("__transaction_state", 0, 99), version)
    t.call("no partitions", producer.add(topic), 3)
    for version in (4, 5):
        t.call(f"verify v{version}", producer.verify(topic, 0, 1), version)
        t.call(f"verify, not added v{version}", producer.verify(topic, 0, 5), version)
        t.call(f"verify, another producer id v{version}", producer.verify(topic, 0, producer_id=1), version)
        t.call(f"verify, an old epoch v{version}", producer.verify(topic, 0, producer_epoch=-1), version)
        t.call(f"verify, an unknown id v{version}", producer.verify(topic, 0, transactional_id="nobody"), version)
        t.call(f"verify, an empty id v{version}", producer.verify(topic, 0, transactional_id=""), version)
        t.call(f"verify, a partition that is not v{version}", producer.verify(topic, 0, 99), version)
        t.call(f"add by a broker v{version}", producer.verify(topic, version, verify_only=False), version)
        t.call(f"verify, an internal topic v{version}", producer.verify("__transaction_state", 0), version)
    described: Any = t.quietly(producer.described(), 0)
    (state,) = described.transaction_states
    t.note("partitions", sorted(index for entry in state.topics for index in entry.partitions))


def test_partitions_named_twice(transcript: Transcript) -> None:
    """Once where partitions have errors of their own, as often as it is named where they share one."""
    t = transcript
    topic = create(t, "twice")
    missing = t.name("missing")
    producer = Producer(t, "txn").begin()
    for version in (0, 3):
        t.call(f"added v{version}", producer.add(topic, 0, 0), version)
        t.call(f"missing v{version}", producer.add(missing, 1, 1), version)
    for version in (4, 5):
        t.call(f"added v{version}", producer.verify(topic, 0, 0, verify_only=False), version)
        t.call(f"verified v{version}", producer.verify(topic, 0, 0, 0), version)
        t.call(f"missing v{version}", producer.verify(missing, 0, 0), version)
        topics = [{"name": topic, "partitions": [0]}, {"name": topic, "partitions": [0]}]
        transaction = {**producer.fields(), "verify_only": True, "topics": topics}
        t.call(f"topic twice v{version}", build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[transaction]), version)


def test_end(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "ended")
    producer = Producer(t, "ends").begin()
    t.call("commit before it began", producer.end(committed=True), 3)
    t.call("abort before it began", producer.end(committed=False), 3)
    for version in range(5):
        committed = version % 2 == 0
        t.call(f"add v{version}", producer.add(topic, 0), 3)
        t.call(f"another producer id v{version}", producer.end(committed=committed, producer_id=1), version)
        t.call(f"an old epoch v{version}", producer.end(committed=committed, producer_epoch=-1), version)
        t.call(f"a later epoch v{version}", producer.end(committed=committed, producer_epoch=9), version)
        t.call(f"end v{version}", producer.end(committed=committed), version)
        producer.settle()
        t.call(f"the same end v{version}", producer.end(committed=committed), version)
        t.call(f"the other end v{version}", producer.end(committed=not committed), version)
        t.call(f"verified when it is over v{version}", producer.verify(topic, 0), 5)
    t.call("unknown id", producer.end(committed=True, transactional_id=t.name("nobody")), 3)
    t.call("empty id", producer.end(committed=True, transactional_id=""), 3)
    note_log(t, "markers alone", topic, isolation=1)


def test_records(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "records")
    producer = Producer(t, "writes").begin().begin()
    for version in (3, 9, 10, 11):
        t.call(f"not added v{version}", producer.records(topic, 0, b"no"), version)
    t.quietly(producer.add(topic, 0), 3)
    for sequence, version in enumerate((3, 9, 11)):
        t.call(f"written v{version}", producer.records(topic, sequence, b"v%d" % version), version)
    t.call("a duplicate", producer.records(topic, 1, b"v9"), 9)
    t.call("out of order", producer.records(topic, 9, b"gap"), 9)
    t.call("an epoch to come", producer.records(topic, 5, b"x", epoch=producer.epoch + 1), 9)
    t.call("an epoch of before", producer.records(topic, 0, b"x", epoch=producer.epoch - 1), 9)
    plain = batch(b"plain", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=3)
    t.call("not of the transaction", produce(topic, plain), 9)
    t.call("another transactional id", produce(topic, plain, transactional_id="other"), 9)
    note_log(t, "open, read committed", topic, isolation=1)
    note_log(t, "open, read uncommitted", topic, isolation=0)
    t.quietly(producer.end(committed=False), 3)
    producer.settle()
    for version in (3, 11):
        t.call(f"after the end v{version}", producer.records(topic, 3, b"late"), version)
    t.quietly(producer.add(topic, 0), 3)
    t.call("the next transaction", producer.records(topic, 3, b"kept"), 9)
    t.quietly(producer.end(committed=True), 3)
    producer.settle()
    note_log(t, "after an abort and a commit, read committed", topic, isolation=1)
    note_log(t, "after an abort and a commit, read uncommitted", topic, isolation=0)
    t.call(
        "producers",
        build(ApiKey.DESCRIBE_PRODUCERS, topics=[{"name": topic, "partition_indexes": [0]}]),
        0,
    )


def test_several_producers(transcript: Transcript) -> None:
    """The last stable offset stands at the earliest open transaction; each aborted one is listed to who reads it."""
    t = transcript
    topic = create(t, "shared", 2)
    first, second = Producer(t, "first").begin(), Producer(t, "second").begin()
    for producer in (first, second):
        t.quietly(producer.add(topic, 0), 3)
    t.quietly(first.records(topic, 0, b"a0"), 9)
    t.quietly(second.records(topic, 0, b"b0"), 9)
    t.quietly(first.records(topic, 1, b"a1"), 9)
    t.quietly(produce(topic, batch(b"plain")), 9)
    t.quietly(second.end(committed=True), 3)
    second.settle()
    note_log(t, "the later one is committed", topic, isolation=1)
    for isolation in (0, 1):
        for timestamp in (-1, -2, -3, OLD, OLD + 1):
            asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
            request = build(ApiKey.LIST_OFFSETS, replica_id=-1, isolation_level=isolation, topics=asked)
            answer: Any = t.quietly(request, 7)
            ((found,),) = [entry.partitions for entry in answer.topics]
            t.note(f"offset of {timestamp}, isolation {isolation}", [found.error_code, found.offset])
    t.quietly(first.end(committed=False), 3)
    first.settle()
    note_log(t, "the earlier one is aborted", topic, isolation=1)
    one, other = (
        batch(b"x", producer_id=p.producer_id, producer_epoch=p.epoch, base_sequence=5, is_transactional=True)
        for p in (first, second)
    )
    data = [{"name": topic, "partition_data": [{"index": 0, "records": one}, {"index": 1, "records": other}]}]
    both = build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data, transactional_id=first.name)
    mixed: Any = t.quietly(both, 9)
    errors = {part.error_code for entry in mixed.responses for part in entry.partition_responses}
    t.note("two producers in one request", sorted(errors))


def test_fencing(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "fenced")
    old = Producer(t, "fences").begin()
    t.quietly(old.add(topic, 0), 3)
    t.quietly(old.records(topic, 0, b"zombie"), 9)
    t.call("a new producer, while a transaction is open", old.init(), 4)
    old.settle()
    t.call("the new producer again", old.init(), 4)
    for version in range(4):
        t.call(f"the old one adds v{version}", old.add(topic, 0), version)
    t.sweep("the old one ends", range(5), lambda _: old.end(committed=True))
    t.sweep("the old one adds offsets", range(5), lambda _: old.add_offsets("g"))
    for version in (3, 10, 11):
        t.call(f"the old one writes v{version}", old.records(topic, 1, b"late"), version)
    mine = {"producer_id": old.producer_id, "producer_epoch": old.epoch}
    for version in (3, 4):
        t.call(f"the old one goes on v{version}", old.init(**mine), version)
    note_log(t, "the log", topic, isolation=1)


def test_offsets(transcript: Transcript) -> None:
    t = transcript
    topic, group = create(t, "sources", 3), t.name("group")
    producer = Producer(t, "commits").begin()

    def fetched(label: str, stable: bool) -> None:
        asked = [{"name": topic, "partition_indexes": [0, 1]}]
        request = build(ApiKey.OFFSET_FETCH, group_id=group, topics=asked, require_stable=stable)
        t.call(label, request, 7)

    t.sweep("group not added", range(5), lambda _: producer.commit_offsets(group, topic, 1))
    t.sweep("added", range(5), lambda _: producer.add_offsets(group))
    t.sweep("committed", range(5), lambda version: producer.commit_offsets(group, topic, version + 1))
    t.call("a partition that is not", producer.commit_offsets(group, topic, 1, 0, 99), 3)
    t.call("a topic that is not", producer.commit_offsets(group, t.name("missing"), 1), 3)
    for version in (3, 4):
        asked = {"member_id": "who", "generation_id": 1}
        t.call(f"an unknown member v{version}", producer.commit_offsets(group, topic, 1, **asked), version)
        asked = {"generation_id": 5}
        t.call(f"a generation alone v{version}", producer.commit_offsets(group, topic, 1, **asked), version)
        asked = {"group_instance_id": "static"}
        t.call(f"an unknown instance v{version}", producer.commit_offsets(group, topic, 1, **asked), version)
    t.call("too much metadata", with_metadata(producer.commit_offsets(group, topic, 1), "x" * 4097), 3)
    t.call("an empty group", producer.commit_offsets("", topic, 1), 3)
    fetched("fetched", stable=False)
    fetched("fetched, stable", stable=True)
    t.quietly(producer.end(committed=True), 3)
    producer.settle()
    eventually(
        lambda: t.quietly(build(ApiKey.OFFSET_FETCH, group_id=group, topics=None, require_stable=True), 7),
        accept=lambda answer: not any(part.error_code for entry in answer.topics for part in entry.partitions),  # type: ignore[attr-defined]
    )
    fetched("fetched after the commit", stable=True)
    t.quietly(producer.add_offsets(group), 3)
    for version in (2, 3, 4):
        changed = {"producer_id": producer.producer_id + 1}
        t.call(f"another producer id v{version}", producer.commit_offsets(group, topic, 1, **changed), version)
        changed = {"producer_epoch": producer.epoch + 1}
        t.call(f"a later epoch v{version}", producer.commit_offsets(group, topic, 1, **changed), version)
        unknown = {"transactional_id": t.name("nobody")}
        t.call(f"an unknown id v{version}", producer.commit_offsets(group, topic, 1, **unknown), version)
    t.quietly(producer.commit_offsets(group, topic, 99), 3)
    t.quietly(producer.end(committed=False), 3)
    producer.settle()
    fetched("fetched after the abort", stable=False)


def with_metadata(request: Request, metadata: str) -> Request:
    for topic in request.topics:  # type: ignore[attr-defined]
        for partition in topic.partitions:
            partition.committed_metadata = metadata
    return request


def test_markers(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "marked", 2)
    producer = Producer(t, "marks").begin()
    t.quietly(producer.add(topic, 0), 3)
    t.quietly(producer.records(topic, 0, b"hangs"), 9)
    for version in range(2):
        t.call(f"no markers v{version}", build(ApiKey.WRITE_TXN_MARKERS), version)
        t.call(f"a partition that is not v{version}", producer.marker(topic, 99), version)
        t.call(f"a marker v{version}", producer.marker(topic, 0, 99, committed=False, epoch=7), version)
        t.call(f"a marker for nothing v{version}", producer.marker(topic, 0, 1, epoch=7), version)
        t.call(f"of an older coordinator v{version}", producer.marker(topic, 0, epoch=6), version)
        old = {"producer_epoch": producer.epoch - 1 if producer.epoch else 0}
        t.call(f"of an older epoch v{version}", producer.marker(topic, 0, epoch=7, **old), version)
        t.call(f"without a producer v{version}", producer.marker(topic, 0, producer_id=-1), version)
    note_log(t, "the log", topic, isolation=1)


def test_describe_and_list(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "listed", 3)
    producer = Producer(t, "lists").begin()

    def listed(label: str, **filters: object) -> None:
        asked = build(ApiKey.LIST_TRANSACTIONS, producer_id_filters=[producer.producer_id], **filters)
        t.call(label, asked, 1)

    t.call("empty", producer.described(), 0)
    listed("empty, listed")
    t.quietly(producer.add(topic, 2), 3)
    t.call("ongoing", producer.described(), 0)
    listed("ongoing, listed")
    listed("of other states", state_filters=["Empty", "CompleteCommit"])
    listed("of its state", state_filters=["Ongoing", "ongoing"])
    listed("of states that are none", state_filters=["nonsense"])
    listed("open for an hour", duration_filter=3_600_000)
    t.quietly(producer.end(committed=False), 3)
    producer.settle()
    t.call("complete", producer.described(), 0)
    listed("complete, listed")
    t.call(
        "several", build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[producer.name, "nobody", producer.name]), 0
    )


def test_a_transaction_times_out(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "slow")
    producer = Producer(t, "waits", timeout_ms=500).begin()
    t.quietly(producer.add(topic, 0), 3)
    t.quietly(producer.records(topic, 0, b"never"), 9)
    eventually(
        lambda: t.quietly(producer.described(), 0),
        accept=lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",  # type: ignore[attr-defined]
    )
    t.call("described", producer.described(), 0)
    t.call("it commits", producer.end(committed=True), 3)
    t.call("it adds", producer.add(topic, 0), 3)
    for version in (3, 11):
        t.call(f"it writes v{version}", producer.records(topic, 1, b"late"), version)
    mine = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    t.call("it goes on", producer.init(**mine), 4)
    t.call("it begins anew", producer.init(), 4)
    note_log(t, "the log", topic, isolation=1)


def test_late_requests(transcript: Transcript) -> None:
    """What is repeated after the end of its transaction meets the next one, which has the same epoch."""
    t = transcript
    topic = create(t, "late")
    p = Producer(t, "replayed").begin()
    t.call("add", p.add(topic, 0), 3)
    t.call("records", p.records(topic, 0, b"a"), 9)
    t.call("the records again", p.records(topic, 0, b"a"), 9)
    t.call("add again", p.add(topic, 0), 3)
    t.call("commit", p.end(committed=True), 3)
    p.settle()
    t.call("commit again", p.end(committed=True), 3)
    t.call("the records again, after the end", p.records(topic, 0, b"a"), 9)
    t.call("add to the next transaction", p.add(topic, 0), 3)
    t.call("its records: above the lowest sequence that waited for an answer", p.records(topic, 1, b"b"), 9)
    t.call("abort", p.end(committed=False), 3)
    p.settle()
    note_log(t, "the log of the first", topic, isolation=1)

    topic = create(t, "ended")
    p = Producer(t, "ended").begin()
    t.call("second: add", p.add(topic, 0), 3)
    t.call("second: records", p.records(topic, 0, b"a"), 9)
    t.call("second: commit", p.end(committed=True), 3)
    p.settle()
    t.call("second: add to the next transaction", p.add(topic, 0), 3)
    t.call("records of the next transaction", p.records(topic, 1, b"b"), 9)
    t.call("commit again: of the next transaction", p.end(committed=True), 3)
    p.settle()
    t.call("more records of the next transaction", p.records(topic, 2, b"c"), 9)
    t.call("abort of the next transaction", p.end(committed=False), 3)
    t.call("add again: the third transaction", p.add(topic, 0), 3)
    t.call("records of the third transaction", p.records(topic, 2, b"d"), 9)
    successor: Any = t.call("its successor begins", p.init(), 4)
    assert successor.error_code in (0, 51)
    p.settle()
    for label, late in {
        "add": p.add(topic, 0),
        "records": p.records(topic, 3, b"e"),
        "commit": p.end(committed=True),
    }.items():
        t.call(f"{label}, after its successor", late, 9 if label == "records" else 3)
    note_log(t, "the log of the second", topic, isolation=1)
