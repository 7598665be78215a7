"""Subscriptions of readers to the next change of a partition.

A reader of many partitions (a fetch session, a follower's fetcher) skips the partitions whose state it has already
sent: they *rest*. It subscribes to each of them, and reads it again after the next change. So a fetch costs as much as
has changed, however many partitions its session holds.

    change                                                    announced by
    the log: end, high watermark, last stable offset, start,  the log (`Watermarks.on_change`)
      a new segment, leader epochs, a truncation
    leadership, leader epoch, replicas, another log, closing  `Partition`
    the ISR, once the controller has confirmed it             `InSyncReplicas`
    a topic id where there was none, deletion from the        `ControllerRequests`, UpdateMetadata
      metadata cache

A subscription ends with the first announcement. It may come in the middle of a change, so a reader only marks the
partition and reads it later.

Apache Kafka reads every partition of a session with each fetch.
"""

from __future__ import annotations

from typing import Protocol


class Reader(Protocol):
    """One partition in one reader."""

    def has_news(self) -> None:
        """The partition changes: the result of the last read may be outdated."""


class PartitionNews:
    """The readers for which one partition rests."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[Reader, None] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def subscribe(self, reader: Reader) -> None:
        """Call `reader.has_news` at the next change."""
        self._readers[reader] = None

    def unsubscribe(self, reader: Reader) -> None:
        """End the subscription, if there is one."""
        self._readers.pop(reader, None)

    def announce(self) -> None:
        """Wake all readers: the partition changes or may have changed."""
        if self._readers:
            readers, self._readers = self._readers, {}
            for reader in readers:
                reader.has_news()
