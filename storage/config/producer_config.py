"""How long the logs of a broker remember an idle producer, and whether transactions are verified (KIP-890).

Kafka: ProducerStateManagerConfig.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class ProducerStateManagerConfig:
    """One for all logs of a broker. A dynamic config changes it while they are open."""

    producer_id_expiration_ms: int = 86_400_000
    """`producer.id.expiration.ms`"""
    transaction_verification: bool = True
    """`transaction.partition.verification.enable`"""
