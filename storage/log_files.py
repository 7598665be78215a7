"""The names of a log's files and directories: how to build and how to parse them.

    <topic>-<partition>/                      a log; the split is at the last "-"
    <topic>-<partition>.<32 hex>-delete/      to be deleted; -future: the target of a move; -stray: no longer assigned
    %020d.log .index .timeindex .txnindex     a segment; the number is its base offset
    %020d.snapshot                            the producer state below that offset
    *.deleted .cleaned .swap                  a file to be unlinked, one being written, one that replaces another

Kafka: LogFileUtils, LocalLog.parseTopicPartitionName, LocalLog.logDeleteDirName, LocalLog.logFutureDirName,
LocalLog.logStrayDirName.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from odradek.protocol.records.layout import MAX_INT32
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG_FILE_SUFFIX: Final = ".log"
INDEX_FILE_SUFFIX: Final = ".index"
TIME_INDEX_FILE_SUFFIX: Final = ".timeindex"
TXN_INDEX_FILE_SUFFIX: Final = ".txnindex"
SNAPSHOT_FILE_SUFFIX: Final = ".snapshot"
SEGMENT_FILE_SUFFIXES: Final = (LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX)

DELETED_FILE_SUFFIX: Final = ".deleted"
CLEANED_FILE_SUFFIX: Final = ".cleaned"
SWAP_FILE_SUFFIX: Final = ".swap"

DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
STRAY_DIR_SUFFIX: Final = "-stray"

NAME_MAX: Final = 255
"""The longest name of a directory, in bytes. A topic's name is shortened where a suffix would exceed it."""

SKIPPED_DIRECTORIES: Final = frozenset({"remote-log-index-cache", "__cluster_metadata-0"})

_MARKED_DIR = re.compile(r"(.+)-(\d+)\.([0-9a-f]{32})(-delete|-future|-stray)", re.DOTALL)
_PLAIN_DIR = re.compile(r"(.+)-(\d+)", re.DOTALL)
_OFFSET_PREFIX = re.compile(r"(\d{1,20})\.", re.ASCII)


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def snapshot_name(offset: int) -> str:
    return offset_name(offset, SNAPSHOT_FILE_SUFFIX)


def offset_of(name: str) -> int | None:
    """The offset at the start of a file name; None without one."""
    match = _OFFSET_PREFIX.match(name)
    return int(match[1]) if match else None


def snapshot_offsets(log_dir: str) -> Iterator[int]:
    """The offsets of the producer snapshots in a directory."""
    for name in os.listdir(log_dir):
        if name.endswith(SNAPSHOT_FILE_SUFFIX) and (offset := offset_of(name)) is not None:
            yield offset


def log_dir_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def marked_dir_name(topic_partition: TopicPartition, unique_hex: str, suffix: str) -> str:
    """`<topic>-<partition>.<unique_hex><suffix>`, with the topic shortened to fit `NAME_MAX`."""
    tail = f"-{topic_partition.partition}.{unique_hex}{suffix}"
    return topic_partition.topic[: NAME_MAX - len(tail)] + tail


def future_dir_name(topic_partition: TopicPartition, unique_hex: str) -> str:
    """The directory name of a future log. It is not shortened: a start parses the whole topic name from it."""
    return f"{log_dir_name(topic_partition)}.{unique_hex}{FUTURE_DIR_SUFFIX}"


def parse_dir_name(name: str) -> tuple[TopicPartition, str] | None:
    """The partition of a log directory and its suffix (`""`, `-delete`, ...); None for any other name."""
    match = _MARKED_DIR.fullmatch(name)
    if match:
        return _with_suffix(match[1], int(match[2]), match[4])
    if name.endswith((DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)) and "." in name:
        return None
    match = _PLAIN_DIR.fullmatch(name)
    return _with_suffix(match[1], int(match[2]), "") if match else None


def _with_suffix(topic: str, partition: int, suffix: str) -> tuple[TopicPartition, str] | None:
    """None for a number that is no partition: requests and checkpoints have no place for it."""
    return (TopicPartition(topic, partition), suffix) if partition <= MAX_INT32 else None
