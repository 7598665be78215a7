"""How long the last stable offset of a partition stays the same while records are behind it.

An open transaction keeps it where the transaction began, until the transaction has timed out and the coordinator has
looked for such transactions: at most `transaction.timeout.ms` and the interval of that search. A broker that is down
or stands still aborts nothing, and after a start the first search comes after an interval.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from odradek.protocol.api import ApiKey
from tests.support.broker import FAST_SETTINGS, Broker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

POLL_INTERVAL_S = 0.05
SWEEP_S = int(FAST_SETTINGS["transaction.abort.timed.out.transaction.cleanup.interval.ms"]) / 1000
LATEST = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class _Standing:
    """One partition: since when its last stable offset is where it is, and how long it was not served since."""

    def __init__(self, now: float) -> None:
        self.offset = -1
        self.since = self.seen_at = now
        self.away_s = 0.0
        self.is_away = False


class StableOffsetWatch:
    """Asks the broker itself, all the time, from `start` to `stop`."""

    def __init__(self, broker: Broker, partitions: Sequence[tuple[str, int]]) -> None:
        self.longest_s = 0.0
        """As a reader sees it, with the times when the broker was down."""
        self.longest_excused_s = 0.0
        """Without those times, and without one sweep for each of them.

        What the time between two looks has beyond their interval does not count: broker or watch stood still.
        """
        self._broker = broker
        self._partitions = partitions
        self._stopped = threading.Event()
        self._standing = {place: _Standing(time.monotonic()) for place in partitions}
        self._thread = threading.Thread(target=self._watch)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            try:
                with RawClient(self._broker.host, self._broker.port) as client:
                    while not self._stopped.wait(POLL_INTERVAL_S):
                        stable, end = self._latest(client, READ_COMMITTED), self._latest(client, READ_UNCOMMITTED)
                        for place in stable.keys() & end.keys():
                            self._note(self._standing[place], stable[place], end[place], time.monotonic())
            except (OSError, ConnectionClosedError):
                for standing in self._standing.values():
                    standing.is_away = True
                self._stopped.wait(POLL_INTERVAL_S)

    def _note(self, standing: _Standing, stable: int, end: int, now: float) -> None:
        unseen_s = now - standing.seen_at
        if standing.is_away:
            standing.away_s += unseen_s + SWEEP_S
            standing.is_away = False
        else:
            standing.away_s += max(0.0, unseen_s - POLL_INTERVAL_S)
        standing.seen_at = now
        if stable != standing.offset or stable == end:
            standing.offset, standing.since, standing.away_s = stable, now, 0.0
            return
        stood_s = now - standing.since
        self.longest_s = max(self.longest_s, stood_s)
        self.longest_excused_s = max(self.longest_excused_s, stood_s - standing.away_s)

    def _latest(self, client: RawClient, isolation_level: int) -> dict[tuple[str, int], int]:
        """The ends of the partitions that have a leader, as a reader of that isolation level sees them."""
        topics = [
            {"name": topic, "partitions": [{"partition_index": partition, "timestamp": LATEST}]}
            for topic, partition in self._partitions
        ]
        request = build(ApiKey.LIST_OFFSETS, replica_id=-1, isolation_level=isolation_level, topics=topics)
        answer: Any = client.call(request, 5)
        return {
            (topic.name, partition.partition_index): partition.offset
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == 0
        }
