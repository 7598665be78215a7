"""SaslAuthenticate (key 36), served: 0-2. Refused on a listener without SASL.

Kafka: KafkaApis.handleSaslAuthenticateRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


def handle(broker: Services, ctx: RequestContext, request: SaslAuthenticateRequest) -> None:
    ctx.reply(
        SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    )
