"""The cost of a request from its frame to its answer, without the network.

    python -m tests.benchmarks.parts.bench_requests [--profile NAME]

Dispatcher, decoding, handler, replica manager, log and encoding are those of a broker; the connection only counts the
bytes of the answer, and a fetch ends with the region of the file that the kernel would be handed. Prints microseconds
per request as the best of several rounds.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
from collections.abc import Callable
from pathlib import Path

from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.headers import encode_response_parts
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.benchmarks.parts.bench_storage import batch_of, best_of
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker

ROUNDS, COUNT = 7, 2_000
TOPIC = "bench"


class CountingConnection(FakeConnection):
    """Encodes answers as the real one does, and throws them away."""

    def begin(self, ctx: RequestContext) -> None:
        pass

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        header = ctx.header
        if response is not None:
            encode_response_parts(header.api_key, header.api_version, header.correlation_id, response)


def produce(records: int, size: int, acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of(records, size))
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])])


def fetch(topic_id: bytes, partitions: int, **session: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        **session,
        topics=[
            FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                    for index in range(partitions)
                ],
            )
        ],
    )


def requests(broker: InProcessBroker) -> dict[str, tuple[Request, int]]:
    topic_id = broker.topic_id(TOPIC)
    named = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    return {
        "Produce v11, acks=1, 1 record of 100 bytes": (produce(1, 100, 1), 11),
        "Produce v11, acks=all, 1 record of 100 bytes": (produce(1, 100, -1), 11),
        "Produce v11, acks=all, 100 records of 100 bytes": (produce(100, 100, -1), 11),
        "Fetch v17, no session, 1 partition with data": (fetch(topic_id, 1, session_epoch=-1), 17),
        "Fetch v17, no session, 10 partitions, 1 with data": (fetch(topic_id, 10, session_epoch=-1), 17),
        "Metadata v12, 1 topic of 10 partitions": (named, 12),
        "Heartbeat v4, unknown member": (HeartbeatRequest(group_id="g", member_id="m"), 4),
    }


def measure(broker: InProcessBroker, request: Request, version: int) -> float:
    return best_of(ROUNDS, COUNT, dispatching(broker, request, version))


def dispatching(broker: InProcessBroker, request: Request, version: int) -> Callable[[int], None]:
    frame = memoryview(bytearray(broker.frame(request, version)))  # as it lies in the connection's buffer
    connection = CountingConnection()
    dispatch = broker.dispatch

    def one(index: int) -> None:
        dispatch(connection, frame, 0)

    return one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", metavar="NAME", help="profile the first request whose name begins so")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, in_process_broker(Path(directory)) as broker:
        broker.create_topic(TOPIC, 10)
        broker.call(produce(1, 100, 1), 11)
        for name, (request, version) in requests(broker).items():
            if arguments.profile is None:
                print(f"{measure(broker, request, version):8.1f} µs  {name}")
            elif name.startswith(arguments.profile):
                one = dispatching(broker, request, version)
                profile = cProfile.Profile()
                profile.runcall(best_of, 1, 20_000, one)
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)
                return


if __name__ == "__main__":
    main()
