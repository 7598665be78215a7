"""Whose a log directory is: meta.properties of a broker's log directory names the broker and its cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from odradek.storage.disk.log_dir import META_PROPERTIES_FILE
from odradek.storage.disk.properties_file import read_properties
from spark_jobs.common.job import JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The broker of a directory."""

    broker_id: int
    cluster_id: str | None


def owners(log_dirs: str) -> dict[str, Owner]:
    """The owner of each directory of a list with commas, by absolute path.

    Raises: JobError for a directory without meta.properties, and for directories of different clusters.
    """
    found: dict[str, Owner] = {}
    for log_dir in (os.path.abspath(each.strip()) for each in log_dirs.split(",") if each.strip()):
        found[log_dir] = _owner(log_dir)
    clusters = {owner.cluster_id for owner in found.values()}
    if len(clusters) > 1:
        raise JobError(f"the log directories belong to several clusters: {', '.join(sorted(map(str, clusters)))}")
    return found


def _owner(log_dir: str) -> Owner:
    path = Path(log_dir) / META_PROPERTIES_FILE
    try:
        properties: Mapping[str, str] = read_properties(path)
        return Owner(broker_id=int(properties["broker.id"]), cluster_id=properties.get("cluster.id"))
    except OSError as error:
        raise JobError(f"{path} cannot be read: {error.strerror}: it says which broker the directory is of") from None
    except (KeyError, ValueError):
        raise JobError(f"{path} names no broker.id") from None


def check_cluster(found: Mapping[str, Owner], cluster_id: str | None, bootstrap_servers: str) -> None:
    """Refuse directories of another cluster than that which is asked for replicas. Raises: JobError."""
    for log_dir, owner in found.items():
        if None not in (owner.cluster_id, cluster_id) and owner.cluster_id != cluster_id:
            raise JobError(
                f"{log_dir} belongs to the cluster {owner.cluster_id}, and {bootstrap_servers} to {cluster_id}"
            )
