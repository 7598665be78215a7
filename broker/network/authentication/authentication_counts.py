"""How many authentications of a listener succeeded and failed.

Kafka: Selector.SelectorMetrics.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class AuthenticationCounts:
    """Counts of one listener with TLS or SASL, each with Kafka's name of its sensor.

    A connection of SASL over TLS counts once: when its handshake fails, or when SASL ends.
    """

    successful_authentication: int = 0
    successful_reauthentication: int = 0
    successful_authentication_no_reauth: int = 0
    failed_authentication: int = 0
    failed_reauthentication: int = 0
    expired_connections_killed: int = 0
