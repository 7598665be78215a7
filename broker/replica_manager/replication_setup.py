"""Builds LogManager, and ReplicaManager with its fetchers, moves and quotas, from BrokerConfig.

Kafka: KafkaServer.createReplicaManager, QuotaFactory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.dynamic.dynamic_config import cleaner_config
from odradek.broker.config.keys.quotas import (
    ALTER_LOG_DIRS_BYTES_PER_SECOND,
    FOLLOWER_BYTES_PER_SECOND,
    LEADER_BYTES_PER_SECOND,
)
from odradek.broker.fetch.leader_throttle import LeaderThrottle
from odradek.broker.fetch.replica_selector import REPLICA_SELECTORS
from odradek.broker.fetch.replication_quota import ReplicationQuota
from odradek.broker.replica_manager.replica_manager import ReplicaManager
from odradek.broker.replication.alter_log_dirs import MoveSettings
from odradek.broker.replication.fetcher_settings import FetcherSettings, FetchersSettings, RemoteLeaderSettings
from odradek.broker.replication.replica_fetchers import ReplicaFetcherManager
from odradek.storage.config.producer_config import ProducerStateManagerConfig
from odradek.storage.disk.environment import Environment
from odradek.storage.manager.log_manager import LogManager, LogManagerSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.inter_broker.alter_partition_manager import AlterPartition
    from odradek.broker.inter_broker.ports import MakeLink
    from odradek.broker.machine.machine import Machine
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


def make_replica_manager(
    config: BrokerConfig,
    log_manager: LogManager,
    cache: MetadataCache,
    clock: Clock,
    timer: SystemTimer,
    *,
    broker_id: int,
    alter_partition: AlterPartition,
    make_link: MakeLink,
    broker_epoch: Callable[[], int],
) -> ReplicaManager:
    fetchers = _fetchers_settings(config, cache, clock, broker_id, make_link, broker_epoch)
    return ReplicaManager(
        broker_id=broker_id,
        log_manager=log_manager,
        metadata_cache=cache,
        clock=clock,
        timer=timer,
        replica_lag_time_max_ms=config.replica_lag_time_max_ms,
        high_watermark_checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
        move_settings=_move_settings(config, clock),
        alter_partition=alter_partition,
        make_fetchers=lambda manager: ReplicaFetcherManager(
            manager.partitions,
            log_manager,
            fetchers,
            complete_delayed=manager.complete_delayed,
            mark_for_truncation=manager.moves.mark_for_truncation,
        ),
        leader_throttle=LeaderThrottle(_replication_quota(config, clock, LEADER_BYTES_PER_SECOND), broker_id),
        replica_selector=REPLICA_SELECTORS.get(config.replica_selector_class or ""),
    )


def _replication_quota(config: BrokerConfig, clock: Clock, rate: str) -> ReplicationQuota:
    """A replication quota; its rate is the dynamic broker setting `rate`, in bytes per second."""
    return ReplicationQuota(
        clock,
        lambda: config.dynamic_quota(rate),
        window_count=config.replication_quota_window_num,
        window_ms=config.replication_quota_window_size_seconds * 1_000,
    )


def _move_settings(config: BrokerConfig, clock: Clock) -> MoveSettings:
    quota = ReplicationQuota(
        clock,
        lambda: config.dynamic_quota(ALTER_LOG_DIRS_BYTES_PER_SECOND),
        window_count=config.alter_log_dirs_replication_quota_window_num,
        window_ms=config.alter_log_dirs_replication_quota_window_size_seconds * 1_000,
    )
    return MoveSettings(
        quota=quota,
        threads=config.num_replica_alter_log_dirs_threads or len(config.log_dirs),
        fetch_max_bytes=min(config.replica_fetch_max_bytes, config.replica_fetch_response_max_bytes),
        fetch_backoff_ms=config.replica_fetch_backoff_ms,
    )


def _fetchers_settings(
    config: BrokerConfig,
    cache: MetadataCache,
    clock: Clock,
    broker_id: int,
    make_link: MakeLink,
    broker_epoch: Callable[[], int],
) -> FetchersSettings:
    leader = RemoteLeaderSettings(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        wait_max_ms=config.replica_fetch_wait_max_ms,
        min_bytes=config.replica_fetch_min_bytes,
        max_bytes=config.replica_fetch_max_bytes,
        response_max_bytes=config.replica_fetch_response_max_bytes,
        socket_timeout_ms=config.replica_socket_timeout_ms,
        metadata_version=config.metadata_version,
    )
    return FetchersSettings(
        make_link=make_link,
        end_point=lambda leader_id: cache.end_point(leader_id, config.listeners.inter_broker),
        count=lambda: config.num_replica_fetchers,
        leader=leader,
        fetcher=FetcherSettings(
            broker_id=broker_id,
            quota=_replication_quota(config, clock, FOLLOWER_BYTES_PER_SECOND),
            backoff_ms=config.replica_fetch_backoff_ms,
        ),
    )


def make_log_manager(config: BrokerConfig, clock: Clock, timer: SystemTimer, machine: Machine) -> LogManager:
    """The logs of a broker, not loaded yet."""
    environment = Environment(
        clock=clock,
        timer=timer,
        fs=machine.fs,
        io_pool=machine.io_pool,
        workers=machine.workers,
        random_below=machine.rng.randrange,
        new_uuid_hex=machine.new_uuid_hex,
        validate_all_records=config.value("odradek.validate.records") == "always",
        producers=ProducerStateManagerConfig(
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            transaction_verification=config.transaction_partition_verification_enable,
        ),
        keep_partition_metadata_file=config.metadata_version.has_topic_ids,
    )
    settings = LogManagerSettings(
        recovery_threads_per_data_dir=config.num_recovery_threads_per_data_dir,
        initial_task_delay_ms=config.log_initial_task_delay_ms,
        flush_check_ms=config.log_flush_scheduler_interval_ms,
        recovery_point_checkpoint_ms=config.log_flush_offset_checkpoint_interval_ms,
        log_start_offset_checkpoint_ms=config.log_flush_start_offset_checkpoint_interval_ms,
        retention_check_ms=config.log_retention_check_interval_ms,
        producer_id_expiration_check_ms=config.producer_id_expiration_check_interval_ms,
        cleaner=cleaner_config(config.value),
    )
    return LogManager(config.log_dirs, config.settings, environment, settings)
