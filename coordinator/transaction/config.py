"""Settings of the transaction coordinator.

Kafka: TransactionConfig.
"""

from __future__ import annotations

from typing import NamedTuple


class TransactionConfig(NamedTuple):
    """Defaults are Kafka's. Names are those of server.properties, with underscores."""

    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    transaction_max_timeout_ms: int = 15 * 60 * 1000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 60 * 60 * 1000
    request_timeout_ms: int = 30_000


MARKER_RETRY_BACKOFF_MS = 20
"""The delay before a marker that could not be written is sent again, or the end of a transaction is appended again.
Kafka has no delay: its sender thread loops at the rate of its requests. Here a response may come at once."""
