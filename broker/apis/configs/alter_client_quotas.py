"""AlterClientQuotas (key 49), served: 0-1. v1: flexible encoding.

Refused for every entity: client quotas are not enforced yet, and a stored quota would seem to be.

Kafka: KafkaApis.handleAlterClientQuotasRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AlterClientQuotasRequest) -> None:
    message = "This broker does not enforce client quotas yet."
    ctx.reply(
        AlterClientQuotasResponse(
            entries=[
                ResponseEntryData(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message, entity=entry.entity)
                for entry in request.entries
            ]
        )
    )
