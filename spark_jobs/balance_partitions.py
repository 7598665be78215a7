"""Report the loads of partitions and brokers from their log directories, and plan moves that balance them.

    .venv/bin/python -m spark_jobs.balance_partitions --log-dirs /disks/broker-0,/disks/broker-1 --output plan.json
    .venv/bin/odradek reassign --execute --reassignment-json-file plan.json

The loads come from the files, at no cost to the brokers; the cluster is only asked which brokers have which replicas.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.balance.options import NAME, RATE, BalanceOptions, parse_options
from spark_jobs.common.job import JobError, run_job, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.balance.loads import ReplicaLoad
    from spark_jobs.common.cluster import Placement
    from spark_jobs.common.streaming_run import StopRequest


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        NAME, options.run, lambda spark, stop: balance(spark, options, stop), check=lambda: check_before(options)
    )


def check_before(options: BalanceOptions) -> None:
    """What can be wrong before a JVM starts. Raises: JobError."""
    from spark_jobs.balance.log_dir_owners import owners
    from spark_jobs.kafka_log import check

    check(options.log_dirs, options.source_options())
    owners(options.log_dirs)
    if options.connection is not None:
        check_reachable(options.connection.bootstrap_servers)
    if options.output is not None and not Path(options.output).absolute().parent.is_dir():
        raise JobError(f"--output: there is no folder {Path(options.output).absolute().parent}")


def balance(spark: SparkSession, options: BalanceOptions, stop: StopRequest) -> None:
    """Report, plan, and write the plan. Raises: JobError."""
    from spark_jobs.balance.loads import heaviest_keys, keys_of_rows, loads_of_rows, replica_loads
    from spark_jobs.balance.log_dir_owners import check_cluster, owners
    from spark_jobs.balance.report import broker_lines, key_lines, partition_lines
    from spark_jobs.common.cluster import Cluster
    from spark_jobs.common.stage_progress import StageProgress
    from spark_jobs.kafka_log import register

    register(spark)
    found = owners(options.log_dirs)
    placement = None
    if options.connection is not None:
        placement = Cluster(options.connection).placement()
        check_cluster(found, placement.cluster_id, options.connection.bootstrap_servers)
    source = spark.read.format("kafka_log")
    with StageProgress(spark, stop) as progress:
        progress.begin("reading all replicas")
        rows = source.options(**options.source_options(replicas="all", includeControl="true")).load(options.log_dirs)
        loads = loads_of_rows(replica_loads(rows), {log_dir: owner.broker_id for log_dir, owner in found.items()})
        broker_ids = {owner.broker_id for owner in found.values()}
        for line in [*broker_lines(loads, broker_ids), "", *partition_lines(loads), ""]:
            say(line)
        if options.heaviest_keys:
            progress.begin("counting keys")
            one = spark.read.format("kafka_log").options(**options.source_options()).load(options.log_dirs)
            for line in key_lines(keys_of_rows(heaviest_keys(one, options.heaviest_keys))):
                say(line)
    if placement is not None:
        write_plan(options, placement, loads)


def write_plan(options: BalanceOptions, placement: Placement, loads: Sequence[ReplicaLoad]) -> None:
    """Plan, print the plan with its cost, and write the file. Raises: JobError."""
    from odradek.broker.tools.admin.reassignment.reassignment_plan import format_plan
    from odradek.protocol.topic_partition import TopicPartition
    from spark_jobs.balance.loads import largest_of_each
    from spark_jobs.balance.partitions import planned_partitions, unknown_partitions
    from spark_jobs.balance.planner import Broker, make_plan
    from spark_jobs.balance.report import plan_lines

    largest = largest_of_each(loads)
    partitions = planned_partitions(placement, largest, balance_by=options.balance_by, topics=options.topics)
    for topic, partition in unknown_partitions(placement, largest):
        say(f"warning: {topic}-{partition} is in the directories, and not in the cluster: it is left out of the plan")
    unread = sum((each.topic, each.partition) not in largest for each in partitions)
    if unread:
        say(f"warning: {unread} partitions of the cluster have no records in the directories: they stay, and count 0")
    plan = make_plan(
        [Broker(id=broker_id, rack=rack) for broker_id, rack in placement.racks.items()],
        partitions,
        max_moved_bytes=options.max_moved_bytes,
        max_moves=options.max_moves,
        tolerance=options.tolerance,
    )
    say("")
    for line in plan_lines(plan, unit="/s" if options.balance_by == RATE else ""):
        say(line)
    if not plan.moves:
        return
    text = format_plan({TopicPartition(*name): replicas for name, replicas in plan.replicas().items()})
    if options.output is None or options.dry_run:
        say(text)
        return
    try:
        write_whole(Path(options.output), f"{text}\n".encode())
    except OSError as error:
        raise JobError(f"{options.output} cannot be written: {error.strerror}") from None
    say(f"written: {options.output}")


if __name__ == "__main__":
    sys.exit(main())
