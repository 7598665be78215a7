"""Makes what SASL needs: for the clients of listeners, and for connections to other brokers.

Kafka: KafkaServer.startup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.connection import api_versions
from odradek.broker.network.authentication.authentication import Authentications
from odradek.broker.security.sasl.mechanisms import SaslParts

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.machine.machine import Machine
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.network.connection.connection import Connection
    from odradek.broker.security.sasl.ports import ScramCredentials
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


def make_sasl_parts(
    clock: Clock,
    machine: Machine,
    scram_credentials: ScramCredentials,
    token_manager: DelegationTokenManager | None,
) -> SaslParts:
    """What the mechanisms of listeners, and of connections to other brokers, are made from."""
    tokens = None if token_manager is None else token_manager.cache
    rng, slots = machine.rng, machine.handler_slots
    return SaslParts(clock, machine.io_pool, rng.randbytes, scram_credentials, tokens, slots)


def make_authentications(
    config: BrokerConfig,
    parts: SaslParts,
    timer: SystemTimer,
    in_background: Callable[[Coroutine[object, object, None]], None],
    cache: MetadataCache,
) -> Authentications:
    """Raises nothing: `Authentications.load_listeners` loads the mechanisms."""

    def answer_versions(request: ApiVersionsRequest, version: int, connection: Connection) -> ApiVersionsResponse:
        return api_versions.response_to(request, version, connection, config, cache.finalized_features_epoch)

    def answer_unsupported_versions() -> ApiVersionsResponse:
        return api_versions.unsupported_version_response(config.apis)

    return Authentications(config, parts, timer, in_background, answer_versions, answer_unsupported_versions)
