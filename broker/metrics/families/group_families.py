"""Metrics of the coordinators of groups and transactions.

Kafka: GroupMetadataManager, GroupCoordinatorMetrics, TransactionMarkerChannelManager, TransactionStateManager,
AddPartitionsToTxnManager.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.metrics.family import Family, Histograms, Sample, gauge, gauges, summaries
from odradek.broker.metrics.view import View
from odradek.coordinator.group.state.group_states import GroupState

_MANAGER: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
_NAME: Final = "kafka_coordinator_group_groupmetadatamanager_"
_MARKERS: Final = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name="
_MARKERS_NAME: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_VERIFICATIONS: Final = "kafka.server:type=AddPartitionsToTxnManager,name="
_VERIFICATIONS_NAME: Final = "kafka_server_addpartitionstotxnmanager_"


def _groups(mbean: str, description: str, state: GroupState | None) -> Family:
    def read(view: View) -> Iterator[Sample | None]:
        found = 0
        for group in view.groups:
            found += state is None or group.state is state
            yield None
        yield "", found

    return gauges(f"{_NAME}{mbean.lower()}", (), description, read, mbean=f"{_MANAGER}{mbean}")


def _offsets(view: View) -> Iterator[Sample | None]:
    found = 0
    for group in view.groups:
        found += len(group.offsets)
        yield None
    yield "", found


def _of_loads(coordinator: str, statistic: str, description: str, read: Callable[[View], float]) -> Family:
    """`read` gives milliseconds, or NaN, which is left out."""

    def samples(view: View) -> Iterator[Sample]:
        value = read(view)
        if not math.isnan(value):
            yield "", value

    return gauges(
        f"kafka_server_{coordinator}_coordinator_metrics_partition_load_time_{statistic}",
        (),
        f"Milliseconds in which {description}; absent if there was none in the last half a minute.",
        samples,
        mbean=f"kafka.server:type={coordinator}-coordinator-metrics#partition-load-time-{statistic}",
    )


def _verification_times(view: View) -> Histograms:
    yield "", view.sources.verifications.times_ms


GROUP_FAMILIES: Final = (
    _groups("NumGroups", "Groups that this broker coordinates.", None),
    _groups("NumGroupsEmpty", "Of these, groups without members.", GroupState.EMPTY),
    _groups("NumGroupsStable", "Of these, groups whose members have their assignments.", GroupState.STABLE),
    _groups(
        "NumGroupsPreparingRebalance", "Of these, groups that wait for members to join.", GroupState.PREPARING_REBALANCE
    ),
    _groups(
        "NumGroupsCompletingRebalance",
        "Of these, groups that wait for the assignment.",
        GroupState.COMPLETING_REBALANCE,
    ),
    _groups("NumGroupsDead", "Of these, groups that are being removed.", GroupState.DEAD),
    gauges(f"{_NAME}numoffsets", (), "Committed offsets of these groups.", _offsets, mbean=f"{_MANAGER}NumOffsets"),
    gauge(
        f"{_MARKERS_NAME}unknowndestinationqueuesize",
        "Markers of transactions that wait because the leader of their partitions is not known.",
        lambda view: view.services.transaction_coordinator.markers.unknown_destinations,
        mbean=f"{_MARKERS}UnknownDestinationQueueSize",
    ),
    gauge(
        f"{_MARKERS_NAME}logappendretryqueuesize",
        "Transactions whose completion will be written again to the log of transactions.",
        lambda view: view.services.transaction_coordinator.markers.append_retries,
        mbean=f"{_MARKERS}LogAppendRetryQueueSize",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
        "Rebalances in which the leader has sent its assignment.",
        lambda view: view.services.group_coordinator.completed_rebalances,
        mbean="kafka.server:type=group-coordinator-metrics#group-completed-rebalance-count",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_offset_expiration_count",
        "Committed offsets that were removed because of their age.",
        lambda view: view.services.group_coordinator.expired_offsets,
        mbean="kafka.server:type=group-coordinator-metrics#offset-expiration-count",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_offset_commit_count",
        "Commits of one or more offsets that were written, also in transactions.",
        lambda view: view.services.group_coordinator.offset_commits,
        mbean="kafka.server:type=group-coordinator-metrics#offset-commit-count",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_offset_deletion_count",
        "Committed offsets that clients removed with OffsetDelete.",
        lambda view: view.services.group_coordinator.deleted_offsets,
        mbean="kafka.server:type=group-coordinator-metrics#offset-deletion-count",
    ),
    _of_loads(
        "group",
        "max",
        "a partition of __consumer_offsets was loaded, the longest",
        lambda view: view.sources.group_loads.maximum_ms,
    ),
    _of_loads(
        "group",
        "avg",
        "a partition of __consumer_offsets was loaded, on average",
        lambda view: view.sources.group_loads.average_ms,
    ),
    _of_loads(
        "transaction",
        "max",
        "a partition of __transaction_state was loaded, the longest",
        lambda view: view.sources.transaction_loads.maximum_ms,
    ),
    _of_loads(
        "transaction",
        "avg",
        "a partition of __transaction_state was loaded, on average",
        lambda view: view.sources.transaction_loads.average_ms,
    ),
    gauge(
        f"{_VERIFICATIONS_NAME}verificationfailurerate_count",
        "Partitions of transactional Produce requests that were not in the transaction, or could not be verified.",
        lambda view: view.sources.verifications.failures,
        mbean=f"{_VERIFICATIONS}VerificationFailureRate",
    ),
    summaries(
        f"{_VERIFICATIONS_NAME}verificationtimems",
        (),
        "Milliseconds in which the coordinator of a transaction answered whether partitions belong to it.",
        _verification_times,
        mbean=f"{_VERIFICATIONS}VerificationTimeMs",
    ),
)
