"""The replicas, made from the broker's configuration: what of it replication and moves live by.

Answers to the ReplicaManager and QuotaFactory parts of KafkaServer.startup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config_keys.quotas import ALTER_LOG_DIRS_BYTES_PER_SECOND
from odradek.broker.replica_manager import ReplicaManager
from odradek.broker.replication.alter_log_dirs import MoveSettings
from odradek.broker.replication.replication_quota import ReplicationQuota

if TYPE_CHECKING:
    from odradek.broker.alter_partition_manager import AlterPartition
    from odradek.broker.config import BrokerConfig
    from odradek.broker.metadata_cache import MetadataCache
    from odradek.storage.log_manager import LogManager
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
) -> ReplicaManager:
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
