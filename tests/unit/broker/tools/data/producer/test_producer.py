from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.producer.partitioner import PARTITIONERS
from odradek.broker.tools.data.producer.producer import METADATA_MAX_AGE_MS, DeliveryFailed, Producer, ProducerConfig
from odradek.broker.tools.data.producer.transactions import ProducerFenced
from odradek.broker.tools.data.records.record_reader import InputRecord
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A = TopicPartition("t", 0)
SMALL = ProducerConfig(batch_size=1)
"""Each record is a batch."""


async def started(cluster: DataCluster, config: ProducerConfig = ProducerConfig()) -> Producer:  # noqa: B008
    producer = Producer(cluster.client(), config, PARTITIONERS["murmur2"](lambda count: 0))
    await producer.start()
    return producer


def value(number: int) -> InputRecord:
    return InputRecord(None, b"%d" % number)


def values(cluster: DataCluster, key: TopicPartition = A) -> list[bytes | None]:
    return [record.value for record in cluster.records(key)]


async def send_all(producer: Producer, *records: InputRecord) -> None:
    for record in records:
        await producer.send("t", record)
    await producer.flush()


@virtual_test
async def test_records_are_written() -> None:
    cluster = DataCluster()
    cluster.create("t", 2)
    producer = await started(cluster)
    record = InputRecord(b"k", b"v", (("h", None),), timestamp=5, partition=1)
    await send_all(producer, record, value(1))
    (written,) = cluster.records(TopicPartition("t", 1))
    assert (written.timestamp, written.key, written.value, written.headers) == (5, b"k", b"v", (("h", None),))
    (other,) = cluster.records(A)
    assert other.timestamp == cluster.clock.time_ms()
    assert producer.acknowledged == 2
    batch = RecordBatch(memoryview(cluster.logs[A][0]))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (101, 0, 0)
    await producer.close()


@virtual_test
async def test_nothing_is_lost_doubled_or_reordered_when_the_leader_moves_and_answers_get_lost() -> None:
    cluster = DataCluster()
    cluster.create("t")
    seen: list[tuple[int, int]] = []

    def produce(broker_id: int, request: ProduceRequest) -> ProduceResponse:
        (topic,) = request.topic_data
        sequence = RecordBatch(memoryview(topic.partition_data[0].records)).base_sequence  # type: ignore[arg-type]
        seen.append((broker_id, sequence))
        if len(seen) == 2:
            raise ConnectionResetError("the request was not received")
        if len(seen) == 4:
            cluster.produce(broker_id, request)
            cluster.leaders[A] = 2
            raise TimeoutError("the answer is lost")
        if sequence in written:
            return cluster.produce(broker_id, request, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        response = cluster.produce(broker_id, request)
        if response.responses[0].partition_responses[0].error_code == ErrorCode.NONE:
            written.add(sequence)
        return response

    written: set[int] = {2}  # what the fourth request writes
    cluster.on(ProduceRequest, produce)
    producer = await started(cluster, SMALL)
    await send_all(producer, *map(value, range(5)))
    assert values(cluster) == [b"0", b"1", b"2", b"3", b"4"]
    assert seen == [(1, 0), (1, 1), (1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]
    await producer.close()


@virtual_test
async def test_it_waits_for_a_leader_and_gives_up_in_the_end() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster, ProducerConfig(delivery_timeout_ms=1000))
    cluster.leaders[A] = -1
    with pytest.raises(DeliveryFailed, match=r"1 record\(s\) for t-0 were not acknowledged in 1000 ms: its partition"):
        await send_all(producer, value(1))
    with pytest.raises(DeliveryFailed):
        await producer.send("t", value(2))
    await producer.close()


@virtual_test
async def test_retries_end_with_the_delivery_timeout() -> None:
    cluster = DataCluster()
    cluster.create("t")
    cluster.on(ProduceRequest, lambda broker_id, request: cluster.produce(broker_id, request, 19))
    producer = await started(cluster, ProducerConfig(delivery_timeout_ms=1000))
    with pytest.raises(DeliveryFailed, match="fewer in-sync replicas than required"):
        await send_all(producer, value(1))
    assert len(cluster.requests(ProduceRequest)) == 10
    await producer.close()


@virtual_test
async def test_the_first_record_that_is_refused_ends_it() -> None:
    cluster = DataCluster()
    cluster.create("t")
    cluster.on(ProduceRequest, lambda broker_id, request: cluster.produce(broker_id, request, 10))
    producer = await started(cluster, SMALL)
    with pytest.raises(DeliveryFailed, match="t-0: The request included a message larger than the max"):
        await send_all(producer, value(1), value(2))
    assert len(cluster.requests(ProduceRequest)) == 1
    await producer.close()


@virtual_test
async def test_a_batch_that_cannot_be_encoded_ends_it() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster)
    with pytest.raises(DeliveryFailed, match="records cannot be sent: Invalid negative timestamp -2"):
        await send_all(producer, InputRecord(None, b"x", timestamp=-2))
    await producer.close()


@virtual_test
async def test_a_batch_that_is_too_large_is_split() -> None:
    cluster = DataCluster()
    cluster.create("t")

    def produce(broker_id: int, request: ProduceRequest) -> ProduceResponse:
        batch = RecordBatch(memoryview(request.topic_data[0].partition_data[0].records))  # type: ignore[arg-type]
        return cluster.produce(broker_id, request, 10 if batch.record_count > 1 else 0)

    cluster.on(ProduceRequest, produce)
    producer = await started(cluster)
    await send_all(producer, *map(value, range(5)))
    assert values(cluster) == [b"0", b"1", b"2", b"3", b"4"]
    assert [RecordBatch(memoryview(batch)).base_sequence for batch in cluster.logs[A]] == [0, 1, 2, 3, 4]
    await producer.close()


@virtual_test
async def test_a_broker_that_has_forgotten_the_producer() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster, SMALL)
    await send_all(producer, value(0))
    codes = [ErrorCode.UNKNOWN_PRODUCER_ID]
    cluster.on(
        ProduceRequest,
        lambda broker_id, request: cluster.produce(broker_id, request, codes.pop() if codes else ErrorCode.NONE),
    )
    await send_all(producer, value(1), value(2))
    assert values(cluster) == [b"0", b"1", b"2"]
    stamps = [RecordBatch(memoryview(batch)) for batch in cluster.logs[A]]
    assert [(batch.producer_id, batch.base_sequence) for batch in stamps] == [(101, 0), (102, 0), (102, 1)]
    assert len(cluster.requests(InitProducerIdRequest)) == 2
    await producer.close()


@virtual_test
async def test_memory_is_bounded() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster, ProducerConfig(batch_size=1, buffer_memory=150))
    peak = 0

    def produce(broker_id: int, request: ProduceRequest) -> ProduceResponse:
        nonlocal peak
        peak = max(peak, producer._accumulator.buffered_bytes)
        return cluster.produce(broker_id, request)

    cluster.on(ProduceRequest, produce)
    await send_all(producer, *[InputRecord(None, b"v" * 60) for _ in range(50)])
    assert len(cluster.records(A)) == 50
    assert 150 <= peak < 250, "one record beyond the limit"
    await producer.close()


@virtual_test
async def test_a_request_is_bounded() -> None:
    cluster = DataCluster()
    cluster.create("t", 4)
    producer = await started(cluster, ProducerConfig(batch_size=1, max_request_size=500))
    records = [InputRecord(None, b"v" * 120, partition=partition) for partition in range(4)]
    await send_all(producer, *records)
    sizes = [len(request.topic_data[0].partition_data) for request in cluster.requests(ProduceRequest)]
    assert sum(sizes) == 4
    assert max(sizes) == 2
    await producer.close()


@virtual_test
async def test_without_acknowledgement() -> None:
    cluster = DataCluster()
    cluster.create("t")
    cluster.on(ProduceRequest, lambda broker_id, request: cluster.produce(broker_id, request))
    producer = await started(cluster, ProducerConfig(acks=0))
    await send_all(producer, value(1))
    assert (values(cluster), producer.acknowledged) == ([b"1"], 1)
    assert RecordBatch(memoryview(cluster.logs[A][0])).producer_id == -1, "no idempotence without acks=all"
    await producer.close()


@virtual_test
async def test_partitions_that_are_added_are_found() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster)
    await send_all(producer, value(0))
    with pytest.raises(CommandFailed, match=r"topic t has 1 partition\(s\), and there is no partition 1"):
        await producer.send("t", InputRecord(None, b"x", partition=1))
    cluster.create("t", 2)
    await send_all(producer, InputRecord(None, b"x", partition=1))
    cluster.create("t", 3)
    cluster.clock.advance(METADATA_MAX_AGE_MS)
    await send_all(producer, value(1))
    await cluster.client().wait(1000)
    assert producer._client.cluster.partition_count("t") == 3
    await producer.close()


async def in_transactions(cluster: DataCluster) -> Producer:
    cluster.create("t")
    cluster.on(AddPartitionsToTxnRequest, lambda broker_id, request: AddPartitionsToTxnResponse())
    cluster.on(EndTxnRequest, lambda broker_id, request: EndTxnResponse())
    return await started(cluster, ProducerConfig(transactional_id="id", batch_size=1))


def order(cluster: DataCluster) -> list[str]:
    kinds = (AddPartitionsToTxnRequest, ProduceRequest, EndTxnRequest)
    return [type(request).__name__ for _, request in cluster.asked if isinstance(request, kinds)]


@virtual_test
async def test_a_transaction_is_committed_after_its_records() -> None:
    cluster = DataCluster()
    producer = await in_transactions(cluster)
    for number in range(2):
        await producer.send("t", value(number))
    await producer.commit()
    assert order(cluster) == ["AddPartitionsToTxnRequest", "ProduceRequest", "ProduceRequest", "EndTxnRequest"]
    assert cluster.requests(EndTxnRequest)[0].committed
    assert RecordBatch(memoryview(cluster.logs[A][0])).is_transactional
    assert cluster.requests(ProduceRequest)[0].transactional_id == "id"
    await producer.close()


@virtual_test
async def test_an_abort_drops_what_is_not_sent() -> None:
    cluster = DataCluster()
    producer = await in_transactions(cluster)
    await send_all(producer, value(0))
    await producer.send("t", value(1))
    await producer.send("t", value(2))  # waits for the one before
    await producer.abort()
    assert order(cluster) == ["AddPartitionsToTxnRequest", "ProduceRequest", "ProduceRequest", "EndTxnRequest"]
    assert values(cluster) == [b"0", b"1"]
    assert not cluster.requests(EndTxnRequest)[0].committed
    await producer.close()


@virtual_test
async def test_a_fenced_producer_ends_no_transaction() -> None:
    cluster = DataCluster()
    producer = await in_transactions(cluster)
    cluster.on(
        ProduceRequest,
        lambda broker_id, request: cluster.produce(broker_id, request, ErrorCode.INVALID_PRODUCER_EPOCH),
    )
    await producer.send("t", value(0))
    with pytest.raises(ProducerFenced):
        await producer.commit()
    await producer.abort()
    assert not cluster.requests(EndTxnRequest)
    await producer.close()


@virtual_test
async def test_a_record_that_is_too_large_is_refused() -> None:
    cluster = DataCluster()
    cluster.create("t")
    producer = await started(cluster, ProducerConfig(max_request_size=1_000))
    overhead = 61 + 21 + 1 + 2 + 1  # batch, record, lengths of null key, value and headers
    await send_all(producer, InputRecord(None, bytes(1_000 - overhead)))
    with pytest.raises(CommandFailed) as refused:
        await producer.send("t", InputRecord(None, bytes(1_001 - overhead)))
    assert str(refused.value) == (
        "The message is 1001 bytes when serialized which is larger than 1000, "
        "which is the value of the max.request.size configuration."
    )
    with pytest.raises(CommandFailed, match="The message is 1093 bytes"):
        await producer.send("t", InputRecord(None, None, (("ä", bytes(1_000)), ("b", None))))
    await producer.close()
    producer = await started(cluster, ProducerConfig(buffer_memory=500))
    with pytest.raises(CommandFailed, match="larger than the total memory buffer you have configured"):
        await producer.send("t", InputRecord(b"k", bytes(500)))
    await producer.close()
