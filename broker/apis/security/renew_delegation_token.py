"""RenewDelegationToken (key 39), served: 0-2.

Kafka: KafkaApis.handleRenewTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.security.token_requests import answer_new_expiry, requester, token_manager
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest


def handle(broker: Services, ctx: RequestContext, request: RenewDelegationTokenRequest) -> None:
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms

    def renew() -> Awaitable[int]:
        return token_manager(broker).renew_token(requester(ctx), hmac, period_ms)

    broker.spawn(ctx, request, answer_new_expiry(ctx, RenewDelegationTokenResponse, renew))
