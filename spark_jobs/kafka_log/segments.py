"""The segments of a replica as its directory shows them now, and which of them has an offset.

A broker changes the directory while it is read: it rolls segments, renames deleted ones to `.deleted` and removes them
after a minute, and replaces compacted ones (`.cleaned`, then `.swap`, then the plain name; the old ones become
`.deleted`). A listing takes what is part of the log: plain files, and a `.swap` whose plain file is gone. A `.deleted`
file is used for offsets that nothing else has.

Kafka: LocalLog.replaceSegments, LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from odradek.storage.log_files import (
    DELETE_DIR_SUFFIX,
    DELETED_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    SNAPSHOT_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    offset_of,
    parse_dir_name,
)
from spark_jobs.kafka_log.errors import KafkaLogError
from spark_jobs.kafka_log.log_dirs import Replica, cannot_read, read_topic_id


class ListingChangedError(Exception):
    """A file is no longer what a listing says: the directory has to be listed again."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One `.log` file, under the name that it had when it was listed."""

    base_offset: int
    path: str

    @property
    def file_name(self) -> str:
        """The plain name, whatever suffix the file has."""
        return os.path.basename(self.path).removesuffix(SWAP_FILE_SUFFIX).removesuffix(DELETED_FILE_SUFFIX)

    def identity(self) -> tuple[int, int]:
        """The file that has the name now. Raises: ListingChangedError without one."""
        try:
            found = os.stat(self.path)
        except OSError:
            raise ListingChangedError from None
        return found.st_dev, found.st_ino

    def beside(self, suffix: str) -> str:
        """The path of an index of this segment, which is renamed as the `.log` file is."""
        directory, name = os.path.split(self.path)
        stem, _, marker = name.partition(LOG_FILE_SUFFIX)
        return os.path.join(directory, f"{stem}{suffix}{marker}")


@dataclass(frozen=True, slots=True)
class Listing:
    """The segments of a replica, ordered by base offset."""

    live: tuple[Segment, ...]
    deleted: tuple[Segment, ...]
    snapshots: tuple[int, ...]
    """The offsets of the producer snapshots."""
    path: str

    def index_of(self, offset: int) -> int:
        """The live segment that has `offset` if any has; -1 if all begin behind it."""
        return bisect_right(self.live, offset, key=lambda segment: segment.base_offset) - 1

    def covering(self, offset: int) -> Segment | None:
        """The segment to read `offset` from: a live one, else one that is marked as deleted."""
        index = self.index_of(offset)
        if index >= 0:
            return self.live[index]
        index = bisect_right(self.deleted, offset, key=lambda segment: segment.base_offset) - 1
        return self.deleted[index] if index >= 0 else None

    def next_base(self, segment: Segment) -> int | None:
        """Where the segment behind this one begins; None for the last. Bases of deleted segments count behind deleted
        ones only: a compacted segment holds the offsets of several that were deleted."""
        behind = self.live if segment in self.live else (*self.deleted, *self.live)
        return min((each.base_offset for each in behind if each.base_offset > segment.base_offset), default=None)

    @property
    def first_offset(self) -> int | None:
        """The base offset of the first live segment; None without one."""
        return self.live[0].base_offset if self.live else None


def list_segments(replica: Replica) -> Listing | None:
    """What is there now; None if the replica is gone, or another topic has its name.

    Raises: KafkaLogError if the directory cannot be read.
    """
    for path in _places(replica):
        if replica.topic_id is not None and read_topic_id(path) not in (None, replica.topic_id):
            continue
        try:
            return listing_of(path, os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise KafkaLogError(cannot_read(path, error)) from None
    return None


def _places(replica: Replica) -> Iterator[str]:
    """Where the directory of a replica may be: in its place, in another log directory, or marked for deletion."""
    log_dirs = (replica.log_dir, *replica.elsewhere)
    for log_dir in log_dirs:
        yield os.path.join(log_dir, replica.name)
    if replica.topic_id is None:
        return  # nothing says that a deleted log of this name is the same one
    for log_dir in log_dirs:
        try:
            names = os.listdir(log_dir)
        except OSError:
            continue
        for name in names:
            parsed = parse_dir_name(name) if name.endswith(DELETE_DIR_SUFFIX) else None
            if parsed is not None and parsed[0] == (replica.topic, replica.partition):
                path = os.path.join(log_dir, name)
                if read_topic_id(path) == replica.topic_id:
                    yield path


def listing_of(path: str, names: list[str]) -> Listing:
    """Sort the names of a partition's directory."""
    plain: dict[int, str] = {}
    swapped: dict[int, str] = {}
    deleted: dict[int, str] = {}
    snapshots: list[int] = []
    for name in names:
        offset = offset_of(name)
        if offset is None:
            continue
        _, _, suffix = name.partition(".")
        match f".{suffix}":
            case suffix if suffix == LOG_FILE_SUFFIX:
                plain[offset] = name
            case suffix if suffix == LOG_FILE_SUFFIX + SWAP_FILE_SUFFIX:
                swapped[offset] = name
            case suffix if suffix == LOG_FILE_SUFFIX + DELETED_FILE_SUFFIX:
                deleted[offset] = name
            case suffix if suffix == SNAPSHOT_FILE_SUFFIX:
                snapshots.append(offset)

    def segments(found: dict[int, str]) -> tuple[Segment, ...]:
        return tuple(Segment(base, os.path.join(path, found[base])) for base in sorted(found))

    return Listing(segments(swapped | plain), segments(deleted), tuple(sorted(snapshots)), path)
