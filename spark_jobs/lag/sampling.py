"""Samples: what groups have committed beside where the logs end, now and at earlier points in time.

Earlier points are estimates: the log end at a time is the offset of the first record with that timestamp or a later
one, so producers that set timestamps of their own blur it.

Kafka: ConsumerGroupCommand.ConsumerGroupService.collectGroupOffsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from odradek.broker.tools.admin.client.offset_lookups import LATEST_TIMESTAMP, NO_RECORD, FoundOffset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.lag.group_table import GroupPartition, GroupTable
from spark_jobs.lag.trends import Sample


class OffsetSource(Protocol):
    """Looks up offsets."""

    def offsets(self, requests: Iterable[Mapping[TopicPartition, int]]) -> list[dict[TopicPartition, FoundOffset]]:
        """For each request, the offset of each partition at its timestamp (ms, or -1 for the end), or an error."""


def chosen(keys: Iterable[GroupPartition], *, groups: Collection[str], topics: Collection[str]) -> list[GroupPartition]:
    """Those of these groups and topics; empty: of all."""
    return [key for key in keys if (not groups or key.group in groups) and (not topics or key.tp.topic in topics)]


def samples_now(table: GroupTable, keys: Sequence[GroupPartition], cluster: OffsetSource, now_ms: int) -> list[Sample]:
    """A sample of each partition. The log ends are asked for after the commits were read, so lag is not negative."""
    wanted = dict.fromkeys((key.tp for key in keys), LATEST_TIMESTAMP)
    (ends,) = cluster.offsets([wanted]) if wanted else ({},)
    members = {group: len(table.members(group)) for group in {key.group for key in keys}}
    return [
        Sample(
            time_ms=now_ms,
            group=key.group,
            topic=key.tp.topic,
            partition=key.tp.partition,
            committed=table.committed.get(key),
            log_end=_offset(ends[key.tp], None),
            members=members[key.group],
        )
        for key in keys
    ]


def earlier_samples(
    committed: Mapping[GroupPartition, Sequence[int | None]],
    now: Sequence[Sample],
    cluster: OffsetSource,
    times_ms: Sequence[int],
) -> list[Sample]:
    """Estimated samples of the partitions that have a lag now; `committed` has a value for each of the times."""
    current = [sample for sample in now if sample.lag is not None]
    partitions = {TopicPartition(sample.topic, sample.partition) for sample in current}
    if not partitions or not times_ms:
        return []
    found = cluster.offsets([dict.fromkeys(partitions, time_ms) for time_ms in times_ms])
    samples = []
    for index, time_ms in enumerate(times_ms):
        for sample in current:
            tp = TopicPartition(sample.topic, sample.partition)
            of_key = committed.get(GroupPartition(sample.group, tp))
            then = None if of_key is None else of_key[index]
            log_end = _offset(found[index][tp], sample.log_end)
            if then is not None and log_end is not None:
                # A commit may name records that a producer has dated later.
                samples.append(sample._replace(time_ms=time_ms, committed=then, log_end=max(log_end, then)))
    return samples


def _offset(found: FoundOffset, otherwise: int | None) -> int | None:
    """The offset, or `otherwise` if there is no record that late; None after an error."""
    if found.error_code != ErrorCode.NONE:
        return None
    return otherwise if found.offset == NO_RECORD else found.offset
