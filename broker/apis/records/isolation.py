"""Isolation levels of readers: 0 reads everything up to the high watermark, 1 only committed transactions.

Kafka: IsolationLevel.
"""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode, KafkaError

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


def require_isolation_level(level: int) -> None:
    """Raises: KafkaError UNKNOWN_SERVER_ERROR for an unknown level, as Apache Kafka answers."""
    if level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown isolation level {level}")
