"""SaslHandshake (key 17), served: 0-1. Refused on a listener without SASL.

Kafka: KafkaApis.handleSaslHandshakeRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest


def handle(broker: Services, ctx: RequestContext, request: SaslHandshakeRequest) -> None:
    ctx.reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
