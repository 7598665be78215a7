"""RenewDelegationToken (key 39), served: 0-2.

Kafka: KafkaApis.handleRenewTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.security.token_requests import (
    NO_TIME,
    check_token_requests_allowed,
    requester,
    token_manager,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: RenewDelegationTokenRequest) -> None:
    broker.spawn(ctx, request, _renew(broker, ctx, request))


async def _renew(broker: Services, ctx: RequestContext, request: RenewDelegationTokenRequest) -> None:
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms
    try:
        check_token_requests_allowed(ctx)
        expiry_ms = await token_manager(broker).renew_token(requester(ctx), hmac, period_ms)
    except KafkaError as error:
        ctx.reply(RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME))
        return
    ctx.reply(RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expiry_ms))
