"""The values of the broker's configuration as typed attributes: `log.segment.bytes` is `log_segment_bytes`.

Declarations only; `BrokerConfig` sets them from the table, and a test compares them with it. Values that are computed
from several keys (listeners, directories) are attributes of `BrokerConfig`.
"""

from __future__ import annotations


class BrokerConfigValues:
    """One attribute for each key."""

    # zookeeper
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int | None
    zookeeper_set_acl: bool
    zookeeper_max_in_flight_requests: int
    # general
    broker_id_generation_enable: bool
    reserved_broker_max_id: int
    broker_id: int
    message_max_bytes: int
    num_io_threads: int
    num_replica_alter_log_dirs_threads: int | None
    background_threads: int
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    authorizer_class_name: str
    early_start_listeners: str | None
    broker_rack: str | None
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    controlled_shutdown_enable: bool
    delete_topic_enable: bool
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    max_incremental_fetch_session_cache_slots: int
    fetch_max_bytes: int
    max_request_partition_size_limit: int
    unstable_api_versions_enable: bool
    unstable_feature_versions_enable: bool
    # network
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections_per_ip: int
    max_connections: int
    max_connection_creation_rate: int
    connections_max_idle_ms: int
    connection_failed_authentication_delay_ms: int
    queued_max_requests: int
    queued_max_request_bytes: int
    num_network_threads: int
    # log
    num_partitions: int
    log_segment_bytes: int
    log_roll_ms: int | None
    log_roll_hours: int
    log_roll_jitter_ms: int | None
    log_roll_jitter_hours: int
    log_retention_ms: int | None
    log_retention_minutes: int | None
    log_retention_hours: int
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_cleanup_policy: list[str]
    log_index_size_max_bytes: int
    log_index_interval_bytes: int
    log_flush_interval_messages: int
    log_segment_delete_delay_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_interval_ms: int | None
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_preallocate: bool
    num_recovery_threads_per_data_dir: int
    auto_create_topics_enable: bool
    min_insync_replicas: int
    log_message_format_version: str
    log_message_timestamp_type: str
    log_message_timestamp_difference_max_ms: int
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_after_max_ms: int
    create_topic_policy_class_name: str | None
    alter_config_policy_class_name: str | None
    log_message_downconversion_enable: bool
    log_dir_failure_timeout_ms: int
    log_initial_task_delay_ms: int
    # delegation tokens
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_expiry_check_interval_ms: int
    # compaction
    log_cleaner_threads: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_backoff_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_enable: bool
    log_cleaner_delete_retention_ms: int
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_max_compaction_lag_ms: int
    # replication
    controller_socket_timeout_ms: int
    default_replication_factor: int
    replica_lag_time_max_ms: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_backoff_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    num_replica_fetchers: int
    replica_high_watermark_checkpoint_interval_ms: int
    fetch_purgatory_purge_interval_requests: int
    producer_purgatory_purge_interval_requests: int
    delete_records_purgatory_purge_interval_requests: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_per_broker_percentage: int
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int
    unclean_leader_election_enable: bool
    inter_broker_protocol_version: str
    replica_selector_class: str | None
    # groups
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_coordinator_rebalance_protocols: list[str]
    group_coordinator_threads: int
    group_coordinator_append_linger_ms: int
    group_coordinator_new_enable: bool
    offset_metadata_max_bytes: int
    offsets_load_buffer_size: int
    offsets_topic_replication_factor: int
    offsets_topic_num_partitions: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offsets_commit_required_acks: int
    # transactions
    transaction_state_log_min_isr: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_replication_factor: int
    transaction_state_log_num_partitions: int
    transaction_state_log_segment_bytes: int
    transaction_partition_verification_enable: bool
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    transactional_id_expiration_ms: int
    transaction_max_timeout_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    # quotas
    quota_window_num: int
    replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_num: int
    controller_quota_window_num: int
    quota_window_size_seconds: int
    replication_quota_window_size_seconds: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    controller_quota_window_size_seconds: int
    client_quota_callback_class: str | None
    # authentication
    connections_max_reauth_ms: int
    # odradek
    odradek_as_version: str
    odradek_event_loop_pause_ms: int
    odradek_metrics_listener: str
    odradek_metrics_max_groups: int
    odradek_metrics_max_partitions: int
    odradek_metrics_max_topics: int
    odradek_validate_records: str
