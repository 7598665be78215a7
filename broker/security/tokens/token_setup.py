"""Makes the parts of delegation tokens from the configuration of a broker.

Kafka: DelegationTokenManagerConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.security.tokens.token_manager import DelegationTokenManager, TokenSettings
from odradek.protocol.codec.primitives import uuid_to_text

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.machine.machine import Machine
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock


def make_token_manager(
    config: BrokerConfig, client: MetadataClient, clock: Clock, machine: Machine, secret: str
) -> DelegationTokenManager:
    """`secret`: `config.delegation_token_secret`, which is not None."""
    settings = TokenSettings(
        secret.encode(), config.delegation_token_max_lifetime_ms, config.delegation_token_expiry_time_ms
    )
    return DelegationTokenManager(
        client, clock, machine.io_pool, settings, lambda: uuid_to_text(machine.new_uuid()), machine.rng.randbytes
    )
