"""The part of `restore_topic` that runs on executors: it writes sorted rows to their partitions and keeps the progress.

Spark 4.0's kafka sink has no column for timestamps, so the records go through a client of confluent-kafka.

The progress of a target partition is a committed offset of the restore's group: for each partition of the archive that
goes there, the next offset, as the metadata of the commit. A task reads it before it writes and passes over what is
below it. So a run goes on where the last one, a task attempt that failed, or a speculative copy of the task has ended.
A run that restores other times is refused: below the positions, its records may not be there.

At least once: the offset is committed after the broker has acknowledged a batch of records. A run that dies between the
two leaves a batch that the next one writes again, with the same source positions in its headers.

Exactly once: the batch and the offset are one transaction. The transactional id is made of the group and the target
partition, so at most one writer of the same restore can commit to a partition. A task begins with InitProducerId, which
fences every earlier writer and completes or aborts what it left open; only then does it read the committed offset,
which thus cannot change under it. What a reader with isolation.level=read_committed sees, and the progress, are
always of the same moment.

Errors of `write_records` are JobErrors of one line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from spark_jobs.archive.restore_plan import Place, Positions, TimeRange, positions_of, positions_text
from spark_jobs.common.job import JobError
from spark_jobs.common.source_position import SOURCE_HEADER, SourcePosition

if TYPE_CHECKING:
    import confluent_kafka
    from pyspark.sql import Row

TIMEOUT_S = 90.0
"""Longer than `transaction.timeout.ms`, after which a broker aborts what a writer that died has left open."""
SHOWN_TIMEOUT_S = 5.0
BATCH_BYTES = 32 * 1024 * 1024
"""A batch ends here at the latest: keys and values in the memory of the client."""
MESSAGE_BYTES_MAX = 1_000_000_000
"""The most that librdkafka takes, whose default is below that of a topic: the broker says what is too large."""
FULL_QUEUE_WAIT_S = 0.1
FATAL = "the client has ended with a fatal error"
LEAST_TIMESTAMP_MS = 1
"""librdkafka takes 0 for `now`: a record of 1970-01-01T00:00:00.000 gets this."""
COLUMNS = (
    "target_topic",
    "target_partition",
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "value",
    "headers",
)
"""Of the rows, in the order of `ArchivedRecord`."""

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How records are written. Its repr has no setting of the client: some are passwords."""

    client: dict[str, str] = field(repr=False)
    group: str
    exactly_once: bool
    batch_records: int
    has_source_header: bool
    compression: str = "none"
    times: TimeRange = field(default_factory=TimeRange)

    def transactional_id(self, target: Place) -> str:
        return f"{self.group}-{target.topic}-{target.partition}"


class ArchivedRecord(NamedTuple):
    """A row that is written."""

    target: Place
    source: SourcePosition
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Bytes, about."""
        return len(self.key or b"") + len(self.value or b"") + sum(len(value or b"") for _, value in self.headers)


class Written(NamedTuple):
    """What a task has done for a target partition."""

    topic: str
    partition: int
    restored: int
    skipped: int
    """Records that were there: written by an earlier run, or by an attempt of this task that failed."""


def client_library() -> type[confluent_kafka.Producer]:
    """The class of producers, if the library is there. Raises: JobError."""
    try:
        import confluent_kafka
    except ImportError:
        raise JobError(
            "restore_topic writes through confluent-kafka, which the driver and each executor need: "
            "pip install confluent-kafka"
        ) from None
    producer: type[confluent_kafka.Producer] = confluent_kafka.Producer
    return producer


class Progress:
    """The committed offsets of the restore's group.

    `is_stable`: wait for the end of transactions under way, whose offsets may yet count. A line for the terminal needs
    no such offsets, and must not keep the job from a signal.
    """

    def __init__(self, settings: WriterSettings, *, is_stable: bool = True) -> None:
        client_library()
        import confluent_kafka

        self._group = settings.group
        self._times = settings.times
        self._timeout_s = TIMEOUT_S if is_stable else SHOWN_TIMEOUT_S
        isolation = "read_committed" if is_stable else "read_uncommitted"
        config = {"group.id": settings.group, "enable.auto.commit": "false", "isolation.level": isolation}
        self._consumer = confluent_kafka.Consumer(quiet(settings.client) | config)

    def read(self, targets: Iterable[Place]) -> dict[Place, Positions]:
        """The positions of each target. Raises: JobError."""
        import confluent_kafka

        asked = [confluent_kafka.TopicPartition(target.topic, target.partition) for target in targets]
        if not asked:
            return {}
        with one_line(f"the progress of the group {self._group} cannot be read"):
            found = self._consumer.committed(asked, timeout=self._timeout_s)
        for each in found:
            if each.error is not None:
                raise JobError(f"the progress of {each.topic}:{each.partition} cannot be read: {each.error.str()}")
        return {
            Place(each.topic, each.partition): positions_of(each.metadata or "", self._group, self._times)
            for each in found
        }

    def commit(self, target: Place, positions: Positions) -> None:
        """Store the progress by itself."""
        self._consumer.commit(offsets=[self.committed(target, positions)], asynchronous=False)

    def committed(self, target: Place, positions: Positions) -> confluent_kafka.TopicPartition:
        """What is committed for a target: the metadata counts, the offset is the highest of the positions."""
        import confluent_kafka

        metadata = positions_text(positions, self._times)
        return confluent_kafka.TopicPartition(
            target.topic, target.partition, max(positions.values()), metadata=metadata
        )

    def group_metadata(self) -> object:
        """For a transaction that includes the group's offsets."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        self._consumer.close()


class TargetWriter:
    """Writes the records of one target partition, in order; `close` at the end, `abandon` after an error."""

    def __init__(self, settings: WriterSettings, progress: Progress, target: Place) -> None:
        self._settings = settings
        self._progress = progress
        self._target = target
        self._failure: str | None = None
        self._is_purged = False
        """The failure is that of a record behind the one that failed."""
        self._producer = client_library()(producer_config(settings, target) | {"on_delivery": self._delivered})
        self._in_transaction = False
        if settings.exactly_once:
            self._producer.init_transactions(TIMEOUT_S)  # before the progress is read: see above
        self._positions = progress.read([target])[target]
        self._pending = self._pending_bytes = 0
        self.restored = self.skipped = 0

    def write(self, record: ArchivedRecord) -> None:
        source = Place(record.source.topic, record.source.partition)
        if record.source.offset < self._positions.get(source, 0):
            self.skipped += 1
            return
        if self._settings.exactly_once and not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True
        headers = record.headers
        if self._settings.has_source_header:
            headers = [*headers, (SOURCE_HEADER, record.source.header())]
        self._produce(record, headers)
        self._positions[source] = record.source.offset + 1
        self._pending += 1
        self._pending_bytes += record.size
        if self._pending >= self._settings.batch_records or self._pending_bytes >= BATCH_BYTES:
            self._commit()

    def close(self) -> Written:
        if self._pending:
            self._commit()
        return Written(self._target.topic, self._target.partition, self.restored, self.skipped)

    def abandon(self) -> None:
        """Abort the transaction that is open, so that readers do not wait for its time-out."""
        if self._in_transaction:
            import confluent_kafka

            # Fenced (perhaps a SystemError, see `_serve`), or no broker answers: the next writer of this partition
            # aborts it.
            with suppress(confluent_kafka.KafkaException, SystemError):
                self._producer.abort_transaction(TIMEOUT_S)

    def _produce(self, record: ArchivedRecord, headers: Headers) -> None:
        import confluent_kafka

        timestamp_ms = record.timestamp_ms or LEAST_TIMESTAMP_MS
        while True:
            try:
                self._producer.produce(
                    record.target.topic,
                    record.value,
                    record.key,
                    partition=record.target.partition,
                    headers=headers,
                    timestamp=timestamp_ms,
                )
            except BufferError:
                self._serve(self._producer.poll, FULL_QUEUE_WAIT_S)
            except confluent_kafka.KafkaException:  # also when an earlier record has failed: that error says more
                self._flush()
                raise
            else:
                self._serve(self._producer.poll, 0)
                return

    def _commit(self) -> None:
        self._flush()
        if self._settings.exactly_once:
            offsets = [self._progress.committed(self._target, self._positions)]
            self._producer.send_offsets_to_transaction(offsets, self._progress.group_metadata(), TIMEOUT_S)
            _retried(lambda: self._producer.commit_transaction(TIMEOUT_S))
            self._in_transaction = False
        else:
            self._progress.commit(self._target, self._positions)
        self.restored += self._pending
        self._pending = self._pending_bytes = 0

    def _flush(self) -> None:
        """Wait for the acknowledgement of each record. Raises: JobError if one failed."""
        unsent = self._serve(self._producer.flush, TIMEOUT_S)
        if unsent and self._failure is None:
            self._failure = f"no acknowledgement in {TIMEOUT_S:.0f} s"
        if self._failure is not None:
            raise self._not_written(self._failure)

    def _serve(self, wait: Callable[[float], int], timeout_s: float) -> int:
        """Let the client call `_delivered`. Raises: KafkaException or JobError after a fatal error.

        confluent-kafka sets the exception of a fatal error, and may call `_delivered` before it raises it. `wait` then
        may raise a SystemError instead. A transactional client raises its fatal error again in each call.
        """
        try:
            return wait(timeout_s)
        except SystemError as error:
            if self._settings.exactly_once:
                self._producer.begin_transaction()
            raise self._not_written(self._failure or FATAL) from error

    def _not_written(self, reason: str) -> JobError:
        return JobError(f"records for {self._target} were not written: {reason}")

    def _delivered(self, error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        import confluent_kafka

        if error is None or not (self._failure is None or self._is_purged):
            return
        purged = (confluent_kafka.KafkaError._PURGE_QUEUE, confluent_kafka.KafkaError._PURGE_INFLIGHT)
        self._failure, self._is_purged = error.str(), error.code() in purged


def producer_config(settings: WriterSettings, target: Place) -> dict[str, str | int | bool]:
    """The configuration of the producer for one target."""
    config: dict[str, str | int | bool] = {
        **quiet(settings.client),
        "acks": "all",
        "compression.type": settings.compression,
        "delivery.report.only.error": True,
        "enable.idempotence": True,  # keeps the order within the partition when a request is repeated
        "linger.ms": 5,
        "message.max.bytes": MESSAGE_BYTES_MAX,
    }
    if settings.exactly_once:
        config["transactional.id"] = settings.transactional_id(target)
    return config


def quiet(client: dict[str, str]) -> dict[str, str | int | bool]:
    """A client's configuration without librdkafka's own lines on stderr: the job has one line for an error."""
    return {"log_level": 0, **client}


def fence(settings: WriterSettings, targets: Iterable[Place]) -> None:
    """Abort what tasks that were broken off left open, so that readers of committed records wait for nothing."""
    for target in targets:
        with one_line(f"the transaction of {target} cannot be aborted"):
            client_library()(producer_config(settings, target)).init_transactions(TIMEOUT_S)


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Turn an error of the client library into a JobError that begins with `what`."""
    import confluent_kafka

    try:
        yield
    except confluent_kafka.KafkaException as error:
        reason = error.args[0]
        if reason.code() in (confluent_kafka.KafkaError._FENCED, confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH):
            raise JobError(f"{what}: another restore with the same group writes to it") from None
        raise JobError(f"{what}: {reason.str()}") from None


def _retried(call: Callable[[], None]) -> None:
    """Repeat a call of a transaction for as long as its error says that it may be repeated."""
    import confluent_kafka

    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return call()
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def write_records(records: Iterable[ArchivedRecord], settings: WriterSettings) -> Iterator[Written]:
    """Write records that are sorted by target, and give an account of each target."""
    progress = Progress(settings)
    try:
        for target, of_target in groupby(records, attrgetter("target")):
            with one_line(f"records for {target} were not written"):
                written = _write_target(TargetWriter(settings, progress, target), of_target)
            yield written
    finally:
        progress.close()


def _write_target(writer: TargetWriter, records: Iterable[ArchivedRecord]) -> Written:
    try:
        try:
            for record in records:
                writer.write(record)
        except EOFError:  # Spark has cancelled the task, and sends no more rows: the batch in flight is finished
            writer.close()
            raise
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def records_of(rows: Iterable[Row]) -> Iterator[ArchivedRecord]:
    """The records of rows with `COLUMNS`. Spark has `bytearray` for binary."""
    for to_topic, to_partition, topic, partition, offset, timestamp_ms, key, value, headers in rows:
        yield ArchivedRecord(
            Place(to_topic, to_partition),
            SourcePosition(topic, partition, offset),
            timestamp_ms,
            _bytes(key),
            _bytes(value),
            [(name, _bytes(content)) for name, content in headers or ()],
        )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
