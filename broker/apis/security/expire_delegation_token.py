"""ExpireDelegationToken (key 40), served: 0-2. On a PLAINTEXT listener: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Kafka: KafkaApis.handleExpireTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.security.create_delegation_token import NO_TIME
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: ExpireDelegationTokenRequest) -> None:
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    ctx.reply(ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NO_TIME))
