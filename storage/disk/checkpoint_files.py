"""The small text files of a log directory: offset checkpoints, leader epochs, partition.metadata.

    recovery-point-offset-checkpoint    leader-epoch-checkpoint    partition.metadata
    0                                   0                          version: 0
    2                                   2                          topic_id: 3Kz8...   (no newline at the end)
    orders 0 4711                       0 0
    orders 1 4700                       3 128

Encoding and decoding only: `SyncQueue` writes them. A file that does not parse raises CheckpointError; an empty one has
no entries.

Kafka: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.codec.primitives import uuid_from_text, uuid_to_text
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.offsets import EpochEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_OFFSET_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"

_VERSION: Final = "0"


class CheckpointError(Exception):
    """A checkpoint file has invalid content."""


def encode_lines(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(body)), *body)).encode()


def decode_lines(content: bytes, name: str) -> list[list[str]]:
    """The entries of a checkpoint, each split at white space."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"Malformed text in checkpoint file ({name})") from error
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CheckpointError(f"Unrecognized version of the checkpoint file ({name}): {lines[0]!r}")
    if len(lines) < 2:
        return []
    if not lines[1].strip().isdecimal():
        raise CheckpointError(f"Malformed line in checkpoint file ({name}): {lines[1]!r}")
    expected = int(lines[1])
    if expected != len(lines) - 2:
        raise CheckpointError(f"Expected {expected} entries in checkpoint file ({name}), but found {len(lines) - 2}")
    return [line.split() for line in lines[2:]]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def decode_offsets(content: bytes, name: str) -> dict[TopicPartition, int]:
    offsets = {}
    for fields in decode_lines(content, name):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise CheckpointError(f"Malformed line in checkpoint file ({name}): {fields}") from error
    return offsets


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint file; empty without a file. Raises CheckpointError, OSError."""
    try:
        with open(path, "rb") as file:
            return decode_offsets(file.read(), path)
    except FileNotFoundError:
        return {}


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    return encode_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def decode_epochs(content: bytes, name: str) -> list[EpochEntry]:
    entries = []
    for fields in decode_lines(content, name):
        try:
            epoch, start_offset = fields
            entries.append(EpochEntry(int(epoch), int(start_offset)))
        except ValueError as error:
            raise CheckpointError(f"Malformed line in checkpoint file ({name}): {fields}") from error
    return entries


def read_epochs(path: str) -> list[EpochEntry]:
    """The leader epochs of a log; empty without a file. Raises CheckpointError, OSError."""
    try:
        with open(path, "rb") as file:
            return decode_epochs(file.read(), path)
    except FileNotFoundError:
        return []


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(content: bytes, name: str) -> bytes:
    """The topic id."""
    try:
        lines = [line.split(":") for line in content.decode().splitlines()]
    except UnicodeDecodeError as error:
        raise CheckpointError(f"Malformed text in {name}") from error
    if len(lines) != 2 or len(lines[0]) != 2 or lines[0][0].strip() != "version":
        raise CheckpointError(f"Malformed partition metadata file ({name})")
    if lines[0][1].strip() != _VERSION:
        raise CheckpointError(f"Unrecognized version of partition metadata file ({name}): {lines[0][1].strip()}")
    if len(lines[1]) != 2 or lines[1][0].strip() != "topic_id":
        raise CheckpointError(f"Malformed partition metadata file ({name})")
    try:
        topic_id = uuid_from_text(lines[1][1].strip())
    except ValueError as error:
        raise CheckpointError(f"Invalid topic ID in partition metadata file ({name})") from error
    if not any(topic_id):
        raise CheckpointError(f"Invalid topic ID in partition metadata file ({name})")
    return topic_id


def read_partition_metadata(path: str) -> bytes | None:
    """The topic id of a log; None without a file. Raises CheckpointError, OSError."""
    try:
        with open(path, "rb") as file:
            return decode_partition_metadata(file.read(), path)
    except FileNotFoundError:
        return None
