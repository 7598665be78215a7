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
"""The delay before the markers that could not be written are sent again, and the ends of transactions appended again.
Kafka has no delay: its sender thread loops at the rate of its requests. Here a response may come at once."""

MARKER_RETRY_PAUSE = 4
"""The delay is at least so many times as long as the last round of retries took: a fifth of the time at most goes into
them, however many transactions wait."""

MARKER_RETRY_BACKOFF_MAX_MS = 1_000
"""The longest delay, however long the round took."""
