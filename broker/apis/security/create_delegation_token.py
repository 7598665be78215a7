"""CreateDelegationToken (key 38), served: 0-3. v3: for another owner.

A client of a PLAINTEXT listener is not authenticated and gets no token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Kafka: KafkaApis.handleCreateTokenRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext

NO_TIME: Final = -1

FIRST_REQUESTER_VERSION: Final = 3


def handle(broker: Services, ctx: RequestContext, request: CreateDelegationTokenRequest) -> None:
    kind, _, name = ctx.connection.principal.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=(request.owner_principal_type or "") if request.owner_principal_name else kind,
        principal_name=request.owner_principal_name or name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if ctx.header.api_version >= FIRST_REQUESTER_VERSION:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    ctx.reply(response)
