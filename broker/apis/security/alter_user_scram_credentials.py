"""AlterUserScramCredentials (key 51), served: 0. Refused for every user: there is no authentication by SCRAM yet.

Kafka: KafkaApis.handleAlterUserScramCredentialsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AlterUserScramCredentialsRequest) -> None:
    users = dict.fromkeys([gone.name for gone in request.deletions] + [new.name for new in request.upsertions])
    ctx.reply(
        AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(
                    user=user,
                    error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                    error_message="This broker does not authenticate by SCRAM yet.",
                )
                for user in users
            ]
        )
    )
