"""The expiration of idle producers, and the verification of transactions (KIP-890).

Kafka: ProducerStateManagerConfig.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class ProducerStateManagerConfig:
    """One instance for all logs of a broker. Dynamic configs change it while the logs are open."""

    producer_id_expiration_ms: int = 86_400_000
    """`producer.id.expiration.ms`"""
    transaction_verification: bool = True
    """`transaction.partition.verification.enable`"""
