"""ExpireDelegationToken (key 40), served: 0-2.

Kafka: KafkaApis.handleExpireTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.security.token_requests import answer_new_expiry, requester, token_manager
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest


def handle(broker: Services, ctx: RequestContext, request: ExpireDelegationTokenRequest) -> None:
    hmac, period_ms = bytes(request.hmac), request.expiry_time_period_ms

    def expire() -> Awaitable[int]:
        return token_manager(broker).expire_token(requester(ctx), hmac, period_ms)

    broker.spawn(ctx, request, answer_new_expiry(ctx, ExpireDelegationTokenResponse, expire))
