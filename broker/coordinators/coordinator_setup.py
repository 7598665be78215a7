"""Builds GroupCoordinator and TransactionCoordinator, with their logs, from BrokerConfig.

Kafka: GroupCoordinator.apply, GroupCoordinator.offsetConfig, TransactionCoordinator.apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.coordinators.coordinator_log import InternalTopicLog
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.coordinator.group.coordinator import GroupConfig, GroupCoordinator
from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.coordinator import TransactionCoordinator
from odradek.protocol.records.compression import CompressionType

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.coordinator.ports import ConsumerOffsetTree, ProducerIds, TransactionVerifier
    from odradek.coordinator.transaction.markers import MarkerChannel
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


def make_group_coordinator(
    config: BrokerConfig,
    replicas: ReplicaManager,
    clock: Clock,
    timer: SystemTimer,
    io_pool: IoPool,
    *,
    partition_count: int | None,
    consumer_offset_tree: ConsumerOffsetTree,
    verify_transaction: TransactionVerifier,
) -> GroupCoordinator:
    """`partition_count`: of `__consumer_offsets`, None if the topic does not exist."""
    return GroupCoordinator(
        config=GroupConfig(
            group_min_session_timeout_ms=config.group_min_session_timeout_ms,
            group_max_session_timeout_ms=config.group_max_session_timeout_ms,
            group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            group_max_size=config.group_max_size,
            offset_metadata_max_bytes=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * 60_000,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            metadata_version=config.metadata_version,
        ),
        log=InternalTopicLog(
            GROUP_METADATA_TOPIC,
            partition_count=partition_count or config.offsets_topic_num_partitions,
            required_acks=config.offsets_commit_required_acks,
            timeout_ms=config.offsets_commit_timeout_ms,
            load_buffer_bytes=config.offsets_load_buffer_size,
            compression_type=config.offsets_topic_compression_codec,
            replica_manager=replicas,
            io_pool=io_pool,
        ),
        clock=clock,
        timer=timer,
        new_uuid=_new_uuid,
        consumer_offset_tree=consumer_offset_tree,
        verify_transaction=verify_transaction,
    )


def make_transaction_coordinator(
    config: BrokerConfig,
    replicas: ReplicaManager,
    clock: Clock,
    timer: SystemTimer,
    io_pool: IoPool,
    *,
    partition_count: int | None,
    producer_ids: ProducerIds,
    channel: MarkerChannel,
) -> TransactionCoordinator:
    """`partition_count`: of `__transaction_state`, None if the topic does not exist."""
    abort_interval_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
    remove_interval_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
    return TransactionCoordinator(
        config=TransactionConfig(
            transactional_id_expiration_ms=config.transactional_id_expiration_ms,
            transaction_max_timeout_ms=config.transaction_max_timeout_ms,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=abort_interval_ms,
            transaction_remove_expired_transaction_cleanup_interval_ms=remove_interval_ms,
            request_timeout_ms=config.request_timeout_ms,
        ),
        log=InternalTopicLog(
            TRANSACTION_STATE_TOPIC,
            partition_count=partition_count or config.transaction_state_log_num_partitions,
            required_acks=-1,
            timeout_ms=config.request_timeout_ms,
            load_buffer_bytes=config.transaction_state_log_load_buffer_size,
            compression_type=CompressionType.NONE,
            replica_manager=replicas,
            io_pool=io_pool,
        ),
        clock=clock,
        timer=timer,
        producer_ids=producer_ids,
        channel=channel,
    )


def _new_uuid() -> str:
    import uuid  # a start can do without it

    return str(uuid.uuid4())
