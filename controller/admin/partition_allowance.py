"""How many partitions one request may make.

A request of forty bytes names a count, and a broker that works out the replicas of two thousand million partitions
before it refuses them needs all of its machine's memory. Kafka's ``ReplicationControlManager`` (KRaft) refuses more
than 10,000 of a request with the same words; its controller in ZooKeeper mode has no limit but that of its memory and
of a node. The limit here is what no node of a ZooKeeper with its default ``jute.maxbuffer`` of 1 MiB can hold.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError

MAX_PARTITIONS_PER_REQUEST: Final = 100_000


class PartitionAllowance:
    """What is left of one request's limit."""

    __slots__ = ("_left",)

    def __init__(self, limit: int = MAX_PARTITIONS_PER_REQUEST) -> None:
        self._left = limit

    def take(self, partitions: int) -> None:
        """Count `partitions` that are to be made, before anything is worked out for them. A count that is not positive
        is left to those who judge it.

        Raises: KafkaError POLICY_VIOLATION when the request has made too many; nothing is counted then.
        """
        wanted = max(partitions, 0)
        if wanted > self._left:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        self._left -= wanted
