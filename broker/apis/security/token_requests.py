"""What the handlers of delegation tokens share: who may ask for tokens, and on which connections.

Kafka: KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.model.delegation_token import USER_TYPE, Principal
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
    from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

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


async def answer_new_expiry(
    ctx: RequestContext,
    response_type: type[RenewDelegationTokenResponse | ExpireDelegationTokenResponse],
    change: Callable[[], Awaitable[int]],
) -> None:
    """Change the expiry of a token, and answer with the new one or with the error."""
    try:
        check_token_requests_allowed(ctx)
        code, expiry_ms = ErrorCode.NONE, await change()
    except KafkaError as error:
        code, expiry_ms = error.code, NO_TIME
    ctx.reply(response_type(error_code=code, expiry_timestamp_ms=expiry_ms))


def token_manager(broker: Services) -> DelegationTokenManager:
    """Raises: KafkaError DELEGATION_TOKEN_AUTH_DISABLED."""
    if broker.token_manager is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return broker.token_manager
