"""The wire codec on the messages of hot paths: `python -m tests.benchmarks.parts.bench_codec`.

Best of several runs, in microseconds per message; compiling a version for the first time is shown in milliseconds.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from time import perf_counter

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.headers import RequestHeader, decode_request_header, encode_request, encode_response_parts
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_ID = bytes(range(16))


def produce_request() -> ProduceRequest:
    data = PartitionProduceData(index=3, records=bytes(100))
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="my-topic", partition_data=[data])]
    )


def produce_response() -> ProduceResponse:
    partition = PartitionProduceResponse(index=3, base_offset=12_345)
    return ProduceResponse(responses=[TopicProduceResponse(name="my-topic", partition_responses=[partition])])


def fetch_request(partitions: int, *, by_id: bool) -> FetchRequest:
    wanted = [
        FetchPartition(partition=n, current_leader_epoch=5, fetch_offset=1_000_000 + n, partition_max_bytes=1 << 20)
        for n in range(partitions)
    ]
    topic = FetchTopic(topic_id=TOPIC_ID, partitions=wanted) if by_id else FetchTopic(topic="t", partitions=wanted)
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic])


def fetch_response(partitions: int) -> FetchResponse:
    answers = [PartitionData(partition_index=n, high_watermark=1000, records=bytes(1000)) for n in range(partitions)]
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)])


def list_offsets_request(partitions: int) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(partitions)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="my-topic", partitions=wanted)])


def metadata_response(topics: int, partitions: int) -> MetadataResponse:
    described = [
        MetadataResponsePartition(partition_index=n, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3])
        for n in range(partitions)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        topics=[MetadataResponseTopic(name=f"topic-{n}", partitions=described) for n in range(topics)],
    )


MESSAGES: list[tuple[str, Message, int]] = [
    ("Produce request, 1 partition", produce_request(), 9),
    ("Produce response, 1 partition", produce_response(), 9),
    ("Fetch request, 50 partitions, by name", fetch_request(50, by_id=False), 12),
    ("Fetch request, 50 partitions, by id", fetch_request(50, by_id=True), 17),
    ("Fetch response, 50 partitions", fetch_response(50), 17),
    ("ListOffsets request, 50 partitions", list_offsets_request(50), 5),
    ("Metadata response, 10 x 100 partitions", metadata_response(10, 100), 12),
]


def microseconds(work: Callable[[], object]) -> float:
    """The best of seven, each long enough to be measured."""
    timer = timeit.Timer(work)
    count, _ = timer.autorange(lambda count, seconds: None)
    count = max(1, count // 8)
    return min(timer.repeat(repeat=7, number=count)) / count * 1e6


def first_time(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1e3


def report(name: str, message: Message, version: int) -> None:
    message_type = type(message)
    compile_encoder = first_time(lambda: encode(message, version))
    encoded = memoryview(encode(message, version))
    compile_decoder = first_time(lambda: decode(message_type, encoded, version))
    decoding = microseconds(lambda: decode(message_type, encoded, version))
    encoding = microseconds(lambda: encode(message, version))
    columns = f"{len(encoded):8}{decoding:11.2f}{encoding:11.2f}{compile_decoder:9.1f}{compile_encoder:9.1f}"
    print(f"{f'{name}, v{version}':45}{columns}")


def main() -> None:
    """Print one line a message."""
    print(f"{'':45}{'bytes':>8}{'decode µs':>11}{'encode µs':>11}{'compile ms':>18}")
    for name, message, version in MESSAGES:
        report(name, message, version)
    request = memoryview(encode_request(RequestHeader(ApiKey.PRODUCE, 9, 1, "client-1"), produce_request()))
    response = produce_response()
    decoding = microseconds(lambda: decode_request_header(request))
    encoding = microseconds(lambda: encode_response_parts(ApiKey.PRODUCE, 9, 1, response))
    print(f"{'Request header, v2':53}{decoding:11.2f}")
    print(f"{'Response header and Produce response, v9':64}{encoding:11.2f}")


if __name__ == "__main__":
    main()
