"""Members of a consumer group that are kafka-python consumers, each in a thread of its own.

kafka-python (3.0.12) sends JoinGroup and SyncGroup in a task of its I/O thread and takes their result in `poll`. When a
poll ends by its timeout before that task does, and the task ends before the next poll, the result is lost:

- The next poll drops it and joins again. If the member leads the group, that is a rebalance of all members.
- If the reason of the join was a change of the metadata, the task itself has made it void. The next poll then joins no
  more, the heartbeats stay off, and the broker removes the member after its session timeout.

So these members poll without a timeout, as iteration does. Only a record ends such a poll: a member leaves with the
first record that it reads when it is to leave.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import kafka

import tests.support.loads.kafka_python_sockets  # noqa: F401 - for its effect
from tests.support.loads.group_member import Owned
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

LEAVE_TIMEOUT_S = 30


class PollingMember(kafka.ConsumerRebalanceListener):
    """A consumer of an eager assignor that reads until it has to leave."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], config: Mapping[str, Any]) -> None:
        self.owned: Owned = frozenset()
        self.is_leaving = threading.Event()
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            **config,
        )
        self._consumer.subscribe(list(topics), listener=self)
        self._thread = threading.Thread(target=self._run, name=f"member of {group}", daemon=True)
        self._thread.start()

    def on_partitions_assigned(self, assigned: set[kafka.TopicPartition]) -> None:
        self.owned = frozenset((p.topic, p.partition) for p in assigned)

    def on_partitions_revoked(self, revoked: set[kafka.TopicPartition]) -> None:
        self.owned = frozenset()

    def await_end(self) -> None:
        self._thread.join(LEAVE_TIMEOUT_S)
        assert not self._thread.is_alive(), "no record has ended the last poll"

    def _run(self) -> None:
        for _ in self._consumer:
            if self.is_leaving.is_set():
                break
        self._consumer.close()


@contextmanager
def kafka_python_members(
    bootstrap: str, group: str, topics: Mapping[str, int], count: int, **config: object
) -> Iterator[list[PollingMember]]:
    """So many members, which leave at the end, when each partition of the topics gets a record."""
    members = [PollingMember(bootstrap, group, list(topics), config) for _ in range(count)]
    try:
        yield members
    finally:
        for member in members:
            member.is_leaving.set()
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        for topic, partitions in topics.items():
            for partition in range(partitions):
                producer.produce(topic, b"the last", partition=partition)
        assert producer.flush(LEAVE_TIMEOUT_S) == 0
        for member in members:
            member.await_end()
