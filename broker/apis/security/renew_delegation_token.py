"""RenewDelegationToken (key 39), served: 0-2. On a PLAINTEXT listener: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Kafka: KafkaApis.handleRenewTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.security.create_delegation_token import NO_TIME
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: RenewDelegationTokenRequest) -> None:
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    ctx.reply(RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NO_TIME))
