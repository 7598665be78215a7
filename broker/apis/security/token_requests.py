"""What the handlers of delegation tokens share: who may ask for tokens, and on which connections.

Kafka: KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.model.delegation_token import USER_TYPE, Principal
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager

NO_TIME: Final = -1

ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")


def requester(ctx: RequestContext) -> Principal:
    return Principal.of_text(ctx.connection.principal)


def check_token_requests_allowed(ctx: RequestContext) -> None:
    """A client must have proved who it is, and not by a token: else a token could live on in its descendants.

    Raises: KafkaError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    connection = ctx.connection
    protocol = connection.security_protocol
    if (
        connection.is_token_authenticated
        or protocol is SecurityProtocol.PLAINTEXT
        or (protocol is SecurityProtocol.SSL and requester(ctx) == ANONYMOUS)  # no client certificate
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def token_manager(broker: Services) -> DelegationTokenManager:
    """Raises: KafkaError DELEGATION_TOKEN_AUTH_DISABLED."""
    if broker.token_manager is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return broker.token_manager
