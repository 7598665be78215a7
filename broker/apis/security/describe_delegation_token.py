"""DescribeDelegationToken (key 41), served: 0-3. On a PLAINTEXT listener: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Kafka: KafkaApis.handleDescribeTokensRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: DescribeDelegationTokenRequest) -> None:
    ctx.reply(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
