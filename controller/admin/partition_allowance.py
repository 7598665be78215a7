"""Limits the number of partitions that one request may create.

A request of forty bytes can ask for two billion partitions, and computing their replicas would use all memory. Kafka's
KRaft controller refuses more than 10,000 partitions of a request with the same message; its controller in ZooKeeper
mode has no limit but its memory and the size of a node. The limit here is more than a node can hold with ZooKeeper's
default `jute.maxbuffer` of 1 MiB.

Kafka: ReplicationControlManager.validateTotalNumberOfPartitions.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError

MAX_PARTITIONS_PER_REQUEST: Final = 100_000


class PartitionAllowance:
    """The number of partitions that one request may still create."""

    __slots__ = ("_left",)

    def __init__(self, limit: int = MAX_PARTITIONS_PER_REQUEST) -> None:
        self._left = limit

    def take(self, partitions: int) -> None:
        """Count `partitions` before their replicas are computed. A count below 1 is not counted; its caller refuses it.

        Raises: KafkaError POLICY_VIOLATION if the request creates too many; nothing is counted then.
        """
        wanted = max(partitions, 0)
        if wanted > self._left:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        self._left -= wanted
