"""Replication: how fast a new follower catches up on one partition, the cost for both brokers, and how long acks=all
waits for one follower.

There are two brokers, each in a process of its own; this process sends them LeaderAndIsr, as a controller would.

python -m tests.benchmarks.parts.bench_replication
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.benchmarks.measure import percentile, usage_of
from tests.benchmarks.parts.bench_storage import batch_of
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient

LEADER, FOLLOWER = 1, 2
CATCH_UPS = (("128 KB", 128, 1_000, 512), ("16 KB", 16, 1_000, 512), ("1 KB", 1, 1_000, 64), ("100 B", 1, 100, 16))
"""Name of the batches, records in each and their size, megabytes in all."""

ACKS_ALL_COUNT = 2_000
DEBUGGING_REPLICA_ID = -2
CONTROLLER_EPOCH = 1_000


class Pair:
    """A leader and a follower of any topic's partition 0."""

    def __init__(self, directory: Path) -> None:
        self.brokers = {
            broker_id: OdradekBroker(directory / str(broker_id), {"broker.id": str(broker_id)})
            for broker_id in (LEADER, FOLLOWER)
        }
        for broker in self.brokers.values():
            broker.start()
        self.clients = {broker_id: RawClient(broker.host, broker.port) for broker_id, broker in self.brokers.items()}

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()

    def tell(self, broker_id: int, topic: str, isr: list[int]) -> None:
        replicas, topic_id = [LEADER, FOLLOWER], topic.encode().rjust(16)
        live = [
            UpdateMetadataBroker(
                id=each, endpoints=[UpdateMetadataEndpoint(port=broker.port, host=broker.host, listener="PLAINTEXT")]
            )
            for each, broker in self.brokers.items()
        ]
        known = UpdateMetadataPartitionState(partition_index=0, leader=LEADER, replicas=replicas, isr=isr)
        state = LeaderAndIsrPartitionState(partition_index=0, leader=LEADER, isr=isr, replicas=replicas, is_new=True)
        metadata = UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=[known])
        leadership = LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=[state])
        client = self.clients[broker_id]
        client.call(
            UpdateMetadataRequest(controller_epoch=CONTROLLER_EPOCH, topic_states=[metadata], live_brokers=live), 8
        )
        client.call(LeaderAndIsrRequest(controller_epoch=CONTROLLER_EPOCH, topic_states=[leadership]), 7)

    def produce(self, topic: str, records: bytes, acks: int) -> None:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        response = self.clients[LEADER].call(ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data]), 9)
        assert isinstance(response, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == 0, response

    def end(self, broker_id: int, topic: str) -> int:
        asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])
        request = ListOffsetsRequest(replica_id=DEBUGGING_REPLICA_ID, topics=[asked])
        response = self.clients[broker_id].call(request, 7)
        assert isinstance(response, ListOffsetsResponse)
        return response.topics[0].partitions[0].offset

    def catch_up(self, name: str, records: int, size: int, megabytes: int) -> None:
        topic = f"t{records}-{size}"
        self.tell(LEADER, topic, [LEADER])
        batch = bytes(batch_of(records, size))
        count = megabytes * 1_000_000 // len(batch)
        for _ in range(count):
            self.produce(topic, batch, 1)
        before = {broker_id: usage_of(broker.pid) for broker_id, broker in self.brokers.items()}
        started = time.perf_counter()
        self.tell(FOLLOWER, topic, [LEADER])
        while self.end(FOLLOWER, topic) < count * records:
            time.sleep(0.02)
        took_s = time.perf_counter() - started
        total = count * len(batch) / 1e6
        used = {each: (usage_of(self.brokers[each].pid) - before[each]).total_s * 1_000 / total for each in before}
        print(
            f"{f'catching up, batches of {name}':<34}{total / took_s:8.0f} MB/s   processor s/GB: "
            f"follower {used[FOLLOWER]:.1f}, leader {used[LEADER]:.1f}"
        )

    def acks_all(self) -> None:
        topic = "latency"
        for broker_id in (LEADER, FOLLOWER):
            self.tell(broker_id, topic, [LEADER, FOLLOWER])
        batch = bytes(batch_of(1, 100))
        times = []
        for _ in range(ACKS_ALL_COUNT):
            started = time.perf_counter()
            self.produce(topic, batch, -1)
            times.append((time.perf_counter() - started) * 1_000)
        times.sort()
        shown = ", ".join(f"p{share * 100:g} {percentile(times, share):.2f}" for share in (0.5, 0.99, 0.999))
        print(f"{'acks=all, one follower, ms':<34}{shown}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(Path(directory))
        try:
            for case in CATCH_UPS:
                pair.catch_up(*case)
            pair.acks_all()
        finally:
            pair.close()


if __name__ == "__main__":
    main()
