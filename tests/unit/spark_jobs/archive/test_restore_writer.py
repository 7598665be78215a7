"""The writer of a restore, with clients that are none: the order of its calls, its batches, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import confluent_kafka
import pytest

from odradek.testing import Broker
from spark_jobs.archive import restore_writer
from spark_jobs.archive.restore_plan import Place, Positions, TimeRange
from spark_jobs.archive.restore_writer import (
    BATCH_BYTES,
    ArchivedRecord,
    Progress,
    WriterSettings,
    Written,
    fence,
    records_of,
    write_records,
)
from spark_jobs.common.job import JobError
from spark_jobs.common.source_position import SourcePosition


class Cluster:
    """What the clients did, and what they find."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.positions: dict[Place, Positions] = {}
        self.full_queues = 0
        self.is_refusing = False
        self.delivery_error: str | None = None
        self.fatal_error: confluent_kafka.KafkaError | None = None
        self.is_fatal_when_polled = False
        self.commit_errors: list[confluent_kafka.KafkaError] = []


class FakeProducer:
    def __init__(self, cluster: Cluster, config: dict[str, object]) -> None:
        self.cluster = cluster
        self.config = config

    def init_transactions(self, _: float) -> None:
        self.cluster.calls.append(f"init {self.config['transactional.id']}")

    def begin_transaction(self) -> None:
        if self.cluster.fatal_error is not None and "SystemError" in self.cluster.calls:
            raise confluent_kafka.KafkaException(self.cluster.fatal_error)
        self.cluster.calls.append("begin")

    def produce(self, topic: str, value: bytes | None, key: bytes | None, **more: object) -> None:
        if self.cluster.full_queues:
            self.cluster.full_queues -= 1
            raise BufferError
        if self.cluster.is_refusing:
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._STATE))
        self.cluster.calls.append(
            f"{topic}:{more['partition']} {value!r} {key!r} {more['timestamp']} {more['headers']}"
        )

    def poll(self, _: float) -> None:
        if self.cluster.is_fatal_when_polled:
            self.fail()

    def fail(self) -> None:
        """As confluent-kafka does when it has called `on_delivery` with the exception of a fatal error pending."""
        if self.cluster.fatal_error is not None:
            self.cluster.calls.append("SystemError")
            raise SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception")

    def flush(self, _: float) -> int:
        self.cluster.calls.append("flush")
        if self.cluster.delivery_error is not None:
            # As librdkafka reports it: the records behind the failed one may come first.
            purged, failed = confluent_kafka.KafkaError._PURGE_QUEUE, confluent_kafka.KafkaError._MSG_TIMED_OUT
            for code, text in ((purged, "purged"), (failed, self.cluster.delivery_error), (purged, "purged")):
                self.config["on_delivery"](confluent_kafka.KafkaError(code, text), None)  # type: ignore[operator]
        self.fail()
        return 0

    def send_offsets_to_transaction(self, offsets: list[str], group: str, _: float) -> None:
        self.cluster.calls.append(f"offsets {offsets} {group}")

    def commit_transaction(self, _: float) -> None:
        if self.cluster.commit_errors:
            raise confluent_kafka.KafkaException(self.cluster.commit_errors.pop(0))
        self.cluster.calls.append("commit")

    def abort_transaction(self, _: float) -> None:
        self.cluster.calls.append("abort")


class FakeProgress:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def read(self, targets: Iterable[Place]) -> dict[Place, Positions]:
        self.cluster.calls.append("read")
        return {target: dict(self.cluster.positions.get(target, {})) for target in targets}

    def commit(self, _: Place, positions: Positions) -> None:
        self.cluster.calls.append(f"store {positions}")

    def committed(self, _: Place, positions: Positions) -> str:
        return f"{sorted(positions.values())}"

    def group_metadata(self) -> str:
        return "of the group"

    def close(self) -> None:
        self.cluster.calls.append("close")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(restore_writer, "client_library", lambda: lambda config: FakeProducer(made, config))
    monkeypatch.setattr(restore_writer, "Progress", lambda _: FakeProgress(made))
    return made


def settings(*, exactly_once: bool, batch_records: int = 2, has_source_header: bool = False) -> WriterSettings:
    return WriterSettings(
        client={"sasl.password": "canary"},
        group="g",
        exactly_once=exactly_once,
        batch_records=batch_records,
        has_source_header=has_source_header,
    )


def record(offset: int, value: bytes = b"v", partition: int = 0) -> ArchivedRecord:
    return ArchivedRecord(Place("t", partition), SourcePosition("a", partition, offset), 5, None, value, [])


def test_the_client_leaves_the_size_of_a_record_to_the_broker() -> None:
    value = b"v" * 1_500_000
    with Broker(message_max_bytes=2_000_000) as broker:
        client = {"bootstrap.servers": broker.bootstrap_servers}
        config = restore_writer.producer_config(replace(settings(exactly_once=False), client=client), Place("t", 0))
        producer = confluent_kafka.Producer(config)
        producer.produce("t", value)
        assert producer.flush(30) == 0
        assert broker.topic("t").values() == [value]


def test_progress_is_stored_and_read_with_the_times_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = confluent_kafka.TopicPartition("t", 0)

    class FakeConsumer:
        def __init__(self, _: object) -> None: ...

        def commit(self, *, offsets: list[confluent_kafka.TopicPartition], asynchronous: bool) -> None:
            nonlocal stored
            assert not asynchronous
            (stored,) = offsets

        def committed(self, *_: object, timeout: float) -> list[confluent_kafka.TopicPartition]:
            return [stored]

    monkeypatch.setattr(confluent_kafka, "Consumer", FakeConsumer)
    whole = settings(exactly_once=False)
    part = replace(whole, times=TimeRange(starting_timestamp_ms=5))
    target = Place("t", 0)
    assert Progress(part).read([target]) == {target: {}}
    Progress(part).commit(target, {Place("a", 0): 1_000})
    assert Progress(part).read([target]) == {target: {Place("a", 0): 1_000}}
    with pytest.raises(JobError, match=r"the group g holds the progress of a restore of other times"):
        Progress(whole).read([target])


SENT = "t:0 b'v' None 5 []"


def test_a_transaction_has_the_batch_and_its_progress(cluster: Cluster) -> None:
    written = list(write_records([record(offset) for offset in (0, 1, 2)], settings(exactly_once=True)))
    assert written == [Written("t", 0, restored=3, skipped=0)]
    assert cluster.calls == [
        *("init g-t-0", "read"),  # fenced before the progress is read
        *("begin", SENT, SENT, "flush", "offsets ['[2]'] of the group", "commit"),
        *("begin", SENT, "flush", "offsets ['[3]'] of the group", "commit"),
        "close",
    ]


def test_progress_is_stored_after_the_records_are_acknowledged(cluster: Cluster) -> None:
    list(write_records([record(offset) for offset in (0, 1, 2)], settings(exactly_once=False)))
    source = Place("a", 0)
    assert cluster.calls == [
        "read",
        *(SENT, SENT, "flush", f"store {{{source!r}: 2}}"),
        *(SENT, "flush", f"store {{{source!r}: 3}}"),
        "close",
    ]


def test_what_is_there_is_passed_over(cluster: Cluster) -> None:
    cluster.positions[Place("t", 0)] = {Place("a", 0): 2, Place("b", 0): 9}
    written = list(write_records([record(offset) for offset in (0, 1, 2)], settings(exactly_once=True)))
    assert written == [Written("t", 0, restored=1, skipped=2)]
    assert "offsets ['[3, 9]'] of the group" in cluster.calls
    cluster.calls.clear()
    cluster.positions[Place("t", 0)] = {Place("a", 0): 3}
    assert list(write_records([record(2)], settings(exactly_once=True))) == [Written("t", 0, restored=0, skipped=1)]
    assert cluster.calls == ["init g-t-0", "read", "close"]


def test_each_target_has_a_writer_of_its_own(cluster: Cluster) -> None:
    records = [record(0), record(1, partition=1)]
    assert [each.partition for each in write_records(records, settings(exactly_once=True))] == [0, 1]
    assert [call for call in cluster.calls if call.startswith("init")] == ["init g-t-0", "init g-t-1"]


def test_a_batch_of_large_records_ends_early(cluster: Cluster) -> None:
    large = [record(offset, value=b"x" * (BATCH_BYTES // 2)) for offset in (0, 1, 2)]
    list(write_records(large, settings(exactly_once=True, batch_records=100)))
    assert cluster.calls.count("commit") == 2


def test_a_record_keeps_everything_and_gets_its_source(cluster: Cluster) -> None:
    row = ("t", 0, "a", 7, 8, 0, bytearray(b"k"), None, [("h", bytearray(b"1")), ("n", None)])
    list(write_records(records_of([row]), settings(exactly_once=False, has_source_header=True)))
    headers = [("h", b"1"), ("n", None), ("odradek.source", b"a:7:8")]
    assert f"t:0 None b'k' 1 {headers}" in cluster.calls, "librdkafka takes the timestamp 0 for `now`"


def test_a_task_that_is_cancelled_finishes_its_batch(cluster: Cluster) -> None:
    def cut_off() -> Iterator[ArchivedRecord]:
        yield record(0)
        raise EOFError

    with pytest.raises(EOFError):
        list(write_records(cut_off(), settings(exactly_once=True)))
    assert cluster.calls[-5:] == [SENT, "flush", "offsets ['[1]'] of the group", "commit", "close"]
    cluster.calls.clear()
    with pytest.raises(EOFError):
        list(write_records(cut_off(), settings(exactly_once=False)))
    assert cluster.calls == ["read", SENT, "flush", f"store {{{Place('a', 0)!r}: 1}}", "close"]


def test_a_full_queue_is_waited_for(cluster: Cluster) -> None:
    cluster.full_queues = 3
    list(write_records([record(0)], settings(exactly_once=False)))
    assert SENT in cluster.calls


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_record_that_is_not_acknowledged_ends_the_task(cluster: Cluster, exactly_once: bool) -> None:
    cluster.delivery_error = "Local: Message timed out"
    with pytest.raises(JobError, match=r"^records for t:0 were not written: Local: Message timed out$"):
        list(write_records([record(0)], settings(exactly_once=exactly_once)))
    assert not [call for call in cluster.calls if call.startswith(("store", "offsets"))]
    assert ("abort" in cluster.calls) == exactly_once


def test_a_producer_that_refuses_records_after_a_failed_one_gives_the_first_error(cluster: Cluster) -> None:
    cluster.is_refusing, cluster.delivery_error = True, "Broker: Message size too large"
    with pytest.raises(JobError, match=r"^records for t:0 were not written: Broker: Message size too large$"):
        list(write_records([record(0)], settings(exactly_once=True)))
    cluster.delivery_error = None
    with pytest.raises(JobError, match=r"^records for t:0 were not written: Local: Erroneous state$"):
        list(write_records([record(0)], settings(exactly_once=True)))


@pytest.mark.parametrize("is_polled", [False, True])
def test_a_fatal_error_that_the_library_has_lost_is_told(cluster: Cluster, is_polled: bool) -> None:
    cluster.is_fatal_when_polled = is_polled
    cluster.fatal_error = confluent_kafka.KafkaError(confluent_kafka.KafkaError._FENCED, "newer", True)
    with pytest.raises(JobError, match=r"^records for t:0 were not written: another restore with the same group"):
        list(write_records([record(0)], settings(exactly_once=True)))
    assert cluster.calls[-2:] == ["abort", "close"]
    with pytest.raises(JobError, match=r"^records for t:0 were not written: the client has ended with a fatal error$"):
        list(write_records([record(0)], settings(exactly_once=False)))
    cluster.is_fatal_when_polled, cluster.delivery_error = False, "Broker: Out of order sequence"
    with pytest.raises(JobError, match=r"^records for t:0 were not written: Broker: Out of order sequence$"):
        list(write_records([record(0)], settings(exactly_once=False)))


def test_a_commit_is_repeated_when_it_may_be_and_else_aborted(cluster: Cluster) -> None:
    retriable = confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT, "slow", False, True, False)
    cluster.commit_errors = [retriable, retriable]
    list(write_records([record(0)], settings(exactly_once=True)))
    assert cluster.calls[-2:] == ["commit", "close"]

    cluster.commit_errors = [confluent_kafka.KafkaError(confluent_kafka.KafkaError._FENCED, "newer", True)]
    with pytest.raises(JobError, match=r"^records for t:0 were not written: another restore with the same group"):
        list(write_records([record(0)], settings(exactly_once=True)))
    assert cluster.calls[-2:] == ["abort", "close"]


def test_tasks_that_were_broken_off_are_fenced(cluster: Cluster) -> None:
    fence(settings(exactly_once=True), [Place("t", 0), Place("u", 1)])
    assert cluster.calls == ["init g-t-0", "init g-u-1"]


def test_settings_show_no_password() -> None:
    assert "canary" not in repr(settings(exactly_once=True))
