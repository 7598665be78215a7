"""Sends records to the leaders of their partitions.

One Produce request is under way to each broker. A batch that fails with a retriable error is sent again until
`delivery_timeout_ms` is over; it keeps its place and, with idempotence, its sequence numbers, so nothing is lost,
written twice, or reordered when a leader moves. The first batch that fails for good ends the producer: `send` and
`flush` raise its error.

Kafka: KafkaProducer, Sender.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.command.socket_loop import Background, Event, turn
from odradek.broker.tools.data.producer.accumulator import Batch, RecordAccumulator, size_upper_bound
from odradek.broker.tools.data.producer.producer_state import ProducerState
from odradek.broker.tools.data.producer.transactions import FENCED, ProducerFenced, Transactions, init_producer_id
from odradek.protocol.errors import REFRESHES_METADATA, RETRIABLE, ErrorCode
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.producer.partitioner import Partitioner
    from odradek.broker.tools.data.records.record_reader import InputRecord

IDLE_MS: Final = 3_600_000
METADATA_MAX_AGE_MS: Final = 300_000
"""After this time new partitions of a topic are looked for."""

_LOST_STATE: Final = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})


class ProducerConfig(NamedTuple):
    """Settings of a producer, with the defaults of Apache Kafka's."""

    acks: int = -1
    batch_size: int = 16_384
    buffer_memory: int = 33_554_432
    compression_type: int = CompressionType.NONE
    compression_level: int | None = None
    delivery_timeout_ms: int = 120_000
    enable_idempotence: bool = True
    linger_ms: int = 0
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    request_timeout_ms: int = 30_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000


SIZE_MARGIN: Final = 128
"""More than what a batch of one record without headers has besides key and value, in bytes."""


class DeliveryFailed(CommandFailed):
    """A batch could not be written."""


class Producer:
    """`start`, then `send` and `flush`, then `close`."""

    def __init__(self, client: DataClient, config: ProducerConfig, partitioner: Partitioner) -> None:
        self._client = client
        self._config = config
        self._partitioner = partitioner
        self._accumulator = RecordAccumulator(config.batch_size, config.linger_ms)
        self._state = ProducerState()
        self._transactions: Transactions | None = None
        if config.transactional_id is not None:
            self._transactions = Transactions(
                client, self._state, config.transactional_id, config.transaction_timeout_ms
            )
        self._busy: set[int] = set()
        self._tasks = Background()
        self._is_refreshing = False
        self._refreshed_ms = 0
        """When metadata was asked for after an error, by the monotonic clock."""
        self._needs_id = False
        self._is_renewing_id = False
        self._asked_ms: dict[str, int] = {}
        """When the metadata of a topic was asked for, by the monotonic clock."""
        self._is_closed = False
        self._failure: Exception | None = None
        self._wake = Event()
        """The sender looks for batches again."""
        self._progress = Event()
        """A batch is done; calls that wait for memory or for a flush check again."""
        self.acknowledged = 0
        """Records."""
        self._requests = self._retries = self._sent_bytes = 0

    async def start(self) -> None:
        """Get a producer id where one is needed, and begin to send. Raises: CommandFailed."""
        await self._client.refresh(())
        if self._transactions is not None:
            await self._transactions.init()
        elif self._config.enable_idempotence and self._config.acks == -1:
            await init_producer_id(self._client, self._state)
        self._tasks.start(self._run())

    async def send(
        self, topic: str, record: InputRecord, callback: Callable[[Batch, Exception | None], None] | None = None
    ) -> None:
        """Add a record; waits while the buffer is full. `callback` is called at the end of its batch.

        Raises: CommandFailed if a record could not be written, or the topic or partition is not there.
        """
        self._check_size(record)
        now_ms = self._client.clock.monotonic_ms()
        count = self._client.cluster.partition_count(topic)
        if not count:
            count = await self._client.await_topic(topic, create=True, timeout_ms=self._config.max_block_ms)
            self._asked_ms[topic] = now_ms
        elif now_ms - self._asked_ms.setdefault(topic, now_ms) >= METADATA_MAX_AGE_MS:
            self._asked_ms[topic] = now_ms
            self._refresh_later({topic})
        partition = record.partition
        if partition is None:
            partition = self._partitioner.partition(topic, record.key, count, self._client.cluster.available(topic))
        elif partition >= count:
            partition = await self._added_partition(topic, partition)
        while self._accumulator.buffered_bytes >= self._config.buffer_memory and self._failure is None:
            self._wake_sender()
            await self._until_progress()
        if self._failure is not None:
            raise self._failure
        timestamp = self._client.clock.time_ms() if record.timestamp is None else record.timestamp
        is_complete = self._accumulator.append(
            TopicPartition(topic, partition),
            SimpleRecord(timestamp, record.key, record.value, record.headers),
            now_ms,
            callback,
        )
        self._wake_sender()
        if is_complete:
            self._partitioner.batch_is_full(topic, partition)
            await turn()  # let the sender begin

    def _check_size(self, record: InputRecord) -> None:
        """Kafka: KafkaProducer.ensureValidRecordSize. Raises: CommandFailed."""
        config = self._config
        limit = min(config.max_request_size, config.buffer_memory)
        if not record.headers and len(record.key or b"") + len(record.value or b"") + SIZE_MARGIN < limit:
            return
        size = size_upper_bound(SimpleRecord(0, record.key, record.value, record.headers))
        start = f"The message is {size} bytes when serialized which is larger than"
        if size > config.max_request_size:
            raise CommandFailed(
                f"{start} {config.max_request_size}, which is the value of the max.request.size configuration."
            )
        if size > config.buffer_memory:
            raise CommandFailed(
                f"{start} the total memory buffer you have configured with the buffer.memory configuration."
            )

    async def flush(self) -> None:
        """Wait until all records are written. Raises: CommandFailed if one could not be."""
        self._accumulator.flush()
        try:
            while not self._accumulator.is_empty and self._failure is None:
                self._wake_sender()
                await self._until_progress()
        finally:
            self._accumulator.end_flush()
        if self._failure is not None:
            raise self._failure

    async def commit(self) -> None:
        """Write all records and commit the transaction. Raises: CommandFailed."""
        assert self._transactions is not None
        await self.flush()
        await self._transactions.end(committed=True)

    async def abort(self) -> None:
        """Drop what is not sent yet, wait for what is under way, and abort the transaction. Raises: CommandFailed."""
        assert self._transactions is not None
        if self._failure is None:
            self._failure = DeliveryFailed("the transaction was aborted")
        self._accumulator.drop_waiting(self._failure)
        while not self._accumulator.is_idle:
            await self._until_progress()
        if not isinstance(self._failure, ProducerFenced):
            await self._transactions.end(committed=False)

    async def close(self) -> None:
        """Stop sending; what is not flushed is dropped."""
        self._is_closed = True
        await self._tasks.close()

    def metrics(self) -> dict[str, int]:
        """Counters under the names of Apache's producer."""
        return {
            "record-send-total": self.acknowledged,
            "record-retry-total": self._retries,
            "request-total": self._requests,
            "byte-total": self._sent_bytes,
        }

    async def _added_partition(self, topic: str, partition: int) -> int:
        """A partition that may have been added to the topic since it was asked for. Raises: CommandFailed."""
        await self._client.refresh([topic])
        count = self._client.cluster.partition_count(topic)
        if partition >= count:
            raise CommandFailed(f"topic {topic} has {count} partition(s), and there is no partition {partition}")
        return partition

    async def _run(self) -> None:
        try:
            while not self._is_closed:
                self._wake = Event()
                self._send_ready()
                delay_ms = self._accumulator.next_ready_ms(self._client.clock.monotonic_ms())
                await self._client.wait(IDLE_MS if delay_ms is None else delay_ms, self._wake)
        except CommandFailed as error:
            self._fail(error)

    def _send_ready(self) -> None:
        """Begin a request to each leader that has ready batches and none under way."""
        now_ms = self._client.clock.monotonic_ms()
        if self._failure is not None:
            self._accumulator.drop_waiting(self._failure)
            return
        if self._needs_id and not self._is_renewing_id:
            self._is_renewing_id = True
            self._tasks.start(self._renew_id())
        if self._is_renewing_id:
            return
        chosen: dict[int, list[TopicPartition]] = {}
        sizes: dict[int, int] = {}
        unknown = []
        for topic_partition in self._accumulator.ready(now_ms):
            batch = self._accumulator.peek(topic_partition)
            if now_ms - batch.created_ms >= self._config.delivery_timeout_ms:
                self._fail(self._expired(batch))
                return
            leader = self._client.cluster.leader(topic_partition)
            if leader is None:
                unknown.append(topic_partition.topic)
            elif leader not in self._busy:
                size = sizes.get(leader, 0) + batch.size
                if leader not in sizes or size <= self._config.max_request_size:
                    sizes[leader] = size
                    chosen.setdefault(leader, []).append(topic_partition)
        if unknown:
            self._refresh_later(set(unknown))
        for leader, topic_partitions in chosen.items():
            self._busy.add(leader)
            self._tasks.start(self._produce(leader, [self._accumulator.take(found) for found in topic_partitions]))

    async def _produce(self, leader: int, batches: list[Batch]) -> None:
        try:
            if self._transactions is not None:
                missing = self._transactions.missing(batch.topic_partition for batch in batches)
                if missing:
                    await self._transactions.add_partitions(missing)
            await self._send(leader, batches)
        except (CommandFailed, ValueError, ArithmeticError) as error:  # the last two: a record that cannot be encoded
            failure = error if isinstance(error, CommandFailed) else DeliveryFailed(f"records cannot be sent: {error}")
            for batch in batches:
                self._accumulator.done(batch, failure)
            self._fail(failure)
        finally:
            self._busy.discard(leader)
            self._wake_sender()
            self._note_progress()

    async def _send(self, leader: int, batches: list[Batch]) -> None:
        request = self._request(batches)
        self._requests += 1
        try:
            link = self._client.link(leader, "produce")
            timeout_ms = self._config.request_timeout_ms
            if self._config.acks == 0:
                await link.send(request, timeout_ms)
                for batch in batches:
                    self._succeed(batch)
                return
            response = await link.exchange(request, ProduceResponse, timeout_ms)
        except OSError as error:
            for batch in batches:
                self._retry(batch, str(error))
            self._refresh_later({batch.topic_partition.topic for batch in batches})
            return
        errors = {
            TopicPartition(topic.name, partition.index): (partition.error_code, partition.error_message)
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in batches:
            code, message = errors.get(batch.topic_partition, (ErrorCode.UNKNOWN_SERVER_ERROR, "no answer for it"))
            self._answered(batch, ErrorCode.for_code(code), message)

    def _request(self, batches: list[Batch]) -> ProduceRequest:
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            self._state.stamp(batch)
            payload = batch.encoded(
                self._config.compression_type,
                self._config.compression_level,
                is_transactional=self._transactions is not None,
            )
            self._sent_bytes += len(payload)
            by_topic.setdefault(batch.topic_partition.topic, []).append(
                PartitionProduceData(index=batch.topic_partition.partition, records=payload)
            )
        return ProduceRequest(
            transactional_id=self._config.transactional_id,
            acks=self._config.acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in by_topic.items()],
        )

    def _answered(self, batch: Batch, code: ErrorCode, message: str | None) -> None:
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._succeed(batch)
        elif code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._state.take_back(batch)
            self._accumulator.split(batch)
        elif code in _LOST_STATE and self._transactions is None and self._state.has_id:
            self._state.take_back(batch)
            self._needs_id = True
            self._retry(batch, error_text(code, message))
        elif code in RETRIABLE:
            self._retry(batch, error_text(code, message))
            if code in REFRESHES_METADATA:
                self._refresh_later({batch.topic_partition.topic})
        else:
            kind = ProducerFenced if code in FENCED and self._transactions is not None else DeliveryFailed
            failure = kind(f"{batch.topic_partition}: {error_text(code, message)}")
            self._accumulator.done(batch, failure)
            self._fail(failure)

    def _succeed(self, batch: Batch) -> None:
        self.acknowledged += len(batch.records)
        self._accumulator.done(batch, None)

    def _retry(self, batch: Batch, reason: str) -> None:
        batch.reason = reason
        self._retries += len(batch.records)
        now_ms = self._client.clock.monotonic_ms()
        if now_ms - batch.created_ms >= self._config.delivery_timeout_ms or self._failure is not None:
            failure = self._failure or self._expired(batch)
            self._accumulator.done(batch, failure)
            self._fail(failure)
        else:
            self._accumulator.retry(batch, now_ms + self._client.config.retry_backoff_ms)

    def _expired(self, batch: Batch) -> DeliveryFailed:
        return DeliveryFailed(
            f"{len(batch.records)} record(s) for {batch.topic_partition} were not acknowledged in "
            f"{self._config.delivery_timeout_ms} ms: {batch.reason}"
        )

    def _refresh_later(self, topics: set[str]) -> None:
        """Ask for new metadata, once at a time, and not more often than the back-off allows."""
        if not self._is_refreshing:
            self._is_refreshing = True
            self._tasks.start(self._refresh(topics))

    async def _refresh(self, topics: set[str]) -> None:
        try:
            now_ms = self._client.clock.monotonic_ms()
            if now_ms - self._refreshed_ms < self._client.config.retry_backoff_ms:
                await self._client.back_off()
            self._refreshed_ms = self._client.clock.monotonic_ms()
            await self._client.refresh(topics)
        except CommandFailed:
            pass  # no broker answers at present; batches that wait too long expire
        finally:
            self._is_refreshing = False
            self._wake_sender()

    async def _renew_id(self) -> None:
        try:
            await init_producer_id(self._client, self._state)
        except CommandFailed as error:
            self._fail(error)
        finally:
            self._needs_id = self._is_renewing_id = False
            self._wake_sender()

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
        self._accumulator.drop_waiting(self._failure)
        self._note_progress()

    async def _until_progress(self) -> None:
        if self._progress.is_set:
            self._progress = Event()
        await self._progress.wait()

    def _note_progress(self) -> None:
        self._progress.set()

    def _wake_sender(self) -> None:
        self._wake.set()
