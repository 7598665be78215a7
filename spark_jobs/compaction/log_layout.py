"""Where the logs of a directory begin, and where their active segments do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spark_jobs.common.job import JobError
from spark_jobs.kafka_log.errors import KafkaLogError
from spark_jobs.kafka_log.log_dirs import find_replicas
from spark_jobs.kafka_log.options import parse_options
from spark_jobs.kafka_log.planning import readable_now


class LogLayout(NamedTuple):
    """Of one partition."""

    topic: str
    partition: int
    log_start: int
    active_base: int


def layouts(log_dirs: str, options: Mapping[str, str]) -> list[LogLayout]:
    """Of the replicas that these options of the data source select. Raises: JobError."""
    read = parse_options({**options, "path": log_dirs})
    found: list[LogLayout] = []
    try:
        for replica in find_replicas(read):
            readable = readable_now(replica, read)
            if readable is not None:
                live = readable.listing.live
                active = live[-1].base_offset if live else readable.start
                found.append(LogLayout(replica.topic, replica.partition, readable.start, active))
    except KafkaLogError as error:
        raise JobError(str(error)) from None
    return found
