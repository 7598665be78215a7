"""Verifies a directory of `log.dirs`: its meta.properties, its checkpoints, the names in it, and each of its logs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from odradek.storage import log_files
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE, META_PROPERTIES_FILE
from odradek.storage.disk.properties_file import read_properties
from odradek.storage.verification.findings import Finding, Report
from odradek.storage.verification.names import is_partition_dir
from odradek.storage.verification.partition import LogCheckpoints, verify_partition

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition

_CHECKPOINTS: Final = (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.LOG_START_OFFSET_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
    checkpoints.CLEANER_OFFSET_FILE,
)
_IDENTITY_KEYS: Final = {"0": ("broker.id", "cluster.id"), "1": ("node.id", "cluster.id")}
"""The required keys of meta.properties by its version: 0 for ZooKeeper mode, 1 for KRaft."""
_NUMBERS: Final = ("broker.id", "node.id")


class NothingToVerifyError(Exception):
    """The path is neither a log directory nor the directory of a partition."""


def verify(path: str, report: Report) -> list[TopicPartition]:
    """Verify a log directory or the directory of one partition. Returns the verified partitions.

    Raises: NothingToVerifyError; OSError.
    """
    path = os.path.abspath(path)
    if is_partition_dir(path):
        parsed = log_files.parse_dir_name(os.path.basename(path))
        if parsed is None:
            raise NothingToVerifyError(f"{path} contains a log, but its name is not <topic>-<partition>")
        parent = os.path.dirname(path)
        offsets = _read_checkpoints(parent, report)
        verify_partition(path, _checkpoints_of(parent, offsets, *parsed), report)
        return [parsed[0]]
    if not _is_log_dir(path):
        raise NothingToVerifyError(f"{path} is neither a log directory nor the directory of a partition")
    return _verify_log_dir(path, report)


def _is_log_dir(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(
            entry.name in (*_CHECKPOINTS, META_PROPERTIES_FILE)
            or (entry.is_dir() and log_files.parse_dir_name(entry.name) is not None)
            for entry in entries
        )


def _verify_log_dir(path: str, report: Report) -> list[TopicPartition]:
    _check_meta_properties(os.path.join(path, META_PROPERTIES_FILE), report)
    offsets = _read_checkpoints(path, report)
    partitions = []
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    for name in names:
        directory = os.path.join(path, name)
        if name in log_files.SKIPPED_DIRECTORIES:
            continue
        parsed = log_files.parse_dir_name(name)
        if parsed is None:
            report(Finding(directory, None, "the name is not <topic>-<partition>: a broker refuses to start"))
            continue
        topic_partition, marker = parsed
        if marker in (log_files.DELETE_DIR_SUFFIX, log_files.STRAY_DIR_SUFFIX):
            continue  # deleted or stray: no broker opens the log
        try:
            verify_partition(directory, _checkpoints_of(path, offsets, topic_partition, marker), report)
        except FileNotFoundError:
            if os.path.exists(directory):
                raise
            continue  # deleted during the check
        if not marker:
            partitions.append(topic_partition)
    return partitions


def _checkpoints_of(
    log_dir: str, offsets: dict[str, dict[TopicPartition, int]], topic_partition: TopicPartition, marker: str
) -> LogCheckpoints:
    """The checkpoints of a log. A future log has none here: its partition's entries are those of the current log."""
    return LogCheckpoints(
        is_clean=os.path.exists(os.path.join(log_dir, CLEAN_SHUTDOWN_FILE)),
        offsets={}
        if marker
        else {name: found[topic_partition] for name, found in offsets.items() if topic_partition in found},
    )


def _read_checkpoints(log_dir: str, report: Report) -> dict[str, dict[TopicPartition, int]]:
    offsets = {}
    for name in _CHECKPOINTS:
        path = os.path.join(log_dir, name)
        try:
            offsets[name] = checkpoints.read_offsets(path)
        except checkpoints.CheckpointError as error:
            report(Finding(path, None, str(error)))
    return offsets


def _check_meta_properties(path: str, report: Report) -> None:
    try:
        properties = read_properties(path)
    except FileNotFoundError:
        return
    except ValueError as error:
        report(Finding(path, None, str(error)))
        return
    version = properties.get("version", "0")
    if version not in _IDENTITY_KEYS:
        report(Finding(path, None, f"unknown version {version}"))
        return
    for key in _IDENTITY_KEYS[version]:
        value = properties.get(key, "")
        if not value or (key in _NUMBERS and not value.isdecimal()):
            report(Finding(path, None, f"{key} is missing" if not value else f"{key} {value!r} is no number"))
