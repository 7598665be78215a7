"""Who is to hear of a partition that was read and had nothing new.

A reader of many partitions (a fetch session, a follower's fetcher) leaves those alone about which it has said all there
is to say: they *rest*. It asks the partition to be told when that ends, and reads it again then and not before. So a
fetch costs what has changed, however many partitions it means.

    the partition changes                                     told by
    its log: end, high watermark, last stable offset, start,  the log (`Watermarks.on_change`)
      a new segment, leader epochs, a cut
    leadership, leader epoch, replicas, another log, its end  `Partition`
    the in-sync replicas                                      `InSyncReplicas`, when the controller has agreed
    a topic id where there was none, deletion from the        `ControllerRequests`, UpdateMetadata
      metadata cache

A reader is told once and has to ask again. It may be told in the middle of a change: it notes it and looks later.
"""

from __future__ import annotations

from typing import Protocol


class Reader(Protocol):
    """One partition as one reader sees it."""

    def has_news(self) -> None:
        """The partition changes: what was read of it may not hold any more."""


class PartitionNews:
    """The readers for whom one partition rests."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[Reader, None] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def subscribe(self, reader: Reader) -> None:
        """Tell `reader` of the next change."""
        self._readers[reader] = None

    def unsubscribe(self, reader: Reader) -> None:
        """Do not tell it any more; no harm if it was told already."""
        self._readers.pop(reader, None)

    def announce(self) -> None:
        """Something of the partition changes, or may have changed."""
        if self._readers:
            readers, self._readers = self._readers, {}
            for reader in readers:
                reader.has_news()
