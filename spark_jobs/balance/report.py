"""What the job prints: brokers, partitions, heavy keys, and the plan with its cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_jobs.balance.loads import HeavyKey, ReplicaLoad
from spark_jobs.balance.planner import Plan, imbalance
from spark_jobs.common.plain_text import key_text, size_text, table

MEASURES = ("size", "records", "size/s", "records/s", "compression")
SHOWN_PARTITIONS = 20


def broker_lines(loads: Sequence[ReplicaLoad], broker_ids: Iterable[int]) -> list[str]:
    """A table with a row for each broker whose directories were read."""
    by_broker: dict[int, list[ReplicaLoad]] = {broker_id: [] for broker_id in broker_ids}
    for load in loads:
        by_broker[load.broker_id].append(load)
    rows = [[str(broker_id), str(len(found)), *_measures(found)] for broker_id, found in sorted(by_broker.items())]
    return table(rows, ("broker", "replicas", *MEASURES))


def partition_lines(loads: Sequence[ReplicaLoad]) -> list[str]:
    """A table with a row for each partition, the largest first: of its largest replica, and who has replicas."""
    by_name: dict[tuple[str, int], list[ReplicaLoad]] = {}
    for load in loads:
        by_name.setdefault((load.topic, load.partition), []).append(load)
    ordered = sorted(by_name.items(), key=lambda item: (-max(load.bytes for load in item[1]), item[0]))
    rows = []
    for (topic, partition), found in ordered[:SHOWN_PARTITIONS]:
        brokers = ",".join(str(broker_id) for broker_id in sorted(load.broker_id for load in found))
        rows.append([f"{topic}-{partition}", brokers, *_measures([max(found, key=lambda load: load.bytes)])])
    lines = table(rows, ("partition", "brokers", *MEASURES), left=1)
    if len(ordered) > SHOWN_PARTITIONS:
        lines.append(f"... and {len(ordered) - SHOWN_PARTITIONS:,} smaller partitions")
    return lines


def _measures(loads: Sequence[ReplicaLoad]) -> list[str]:
    stored, uncompressed = sum(load.bytes for load in loads), sum(load.uncompressed_bytes for load in loads)
    return [
        size_text(stored),
        f"{sum(load.records for load in loads):,}",
        size_text(sum(load.bytes_per_second for load in loads)),
        f"{sum(load.records_per_second for load in loads):,.0f}",
        _compression({name for load in loads for name in load.compressions}, stored, uncompressed),
    ]


def _compression(names: set[str], stored: int, uncompressed: int) -> str:
    """`lz4 3.1x`: the records without compression would be 3.1 times as large."""
    if names <= {"none"}:
        return "none"
    return f"{'+'.join(sorted(names))} {uncompressed / stored:.1f}x"


def key_lines(keys: Iterable[HeavyKey]) -> list[str]:
    """`orders: 41.0 % of the bytes have the key "customer 7" (4,100 records, 1.2 MiB)`."""
    return [
        f"{key.topic}: {key.share * 100:.1f} % of the bytes have "
        f"{'no key' if key.key is None else f'the key {key_text(key.key)}'} "
        f"({key.records:,} records, {size_text(key.bytes)})"
        for key in keys
    ]


def plan_lines(plan: Plan, *, unit: str) -> list[str]:
    """The moves, the loads of the brokers before and after, and what it costs. `unit` follows each load: `/s`, or
    nothing.
    """
    lines = [
        f"{move.partition.topic}-{move.partition.partition}: broker {move.source} to {move.target}, "
        f"{size_text(move.partition.size)}"
        for move in plan.moves
    ]
    rows = [
        [str(broker_id), f"{size_text(plan.before[broker_id])}{unit}", f"{size_text(plan.after[broker_id])}{unit}"]
        for broker_id in sorted(plan.before)
    ]
    lines += table(rows, ("broker", "before", "after"))
    lines.append(imbalance_line("before", plan.before))
    if plan.moves:
        lines.append(imbalance_line("after", plan.after))
        number = len(plan.moves)
        lines.append(f"cost: {number} {'move' if number == 1 else 'moves'}, {size_text(plan.moved_bytes)} to copy")
    else:
        lines.append("no move is needed, or allowed, that would make it better")
    return lines


def imbalance_line(when: str, loads: Mapping[int, int]) -> str:
    return f"imbalance {when}: the largest broker has {imbalance(loads):.2f} times the mean"
