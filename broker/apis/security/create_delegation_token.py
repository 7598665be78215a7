"""CreateDelegationToken (key 38), served: 0-3. v3: for another owner.

Kafka: KafkaApis.handleCreateTokenRequest, CreateDelegationTokenResponse.prepareResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.security.token_requests import (
    ANONYMOUS,
    NO_TIME,
    check_token_requests_allowed,
    requester,
    token_manager,
)
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.delegation_token import USER_TYPE, Principal
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

FIRST_REQUESTER_VERSION: Final = 3

RENEWERS_MAX: Final = 1000
RENEWERS_LENGTH_MAX: Final = 100_000
"""Characters of all renewers. A token is one node, and ZooKeeper closes the connection of a client whose request is
larger than its `jute.maxbuffer` of 1 MiB; percent-encoding makes up to nine bytes of a character."""


def handle(broker: Services, ctx: RequestContext, request: CreateDelegationTokenRequest) -> None:
    by = requester(ctx)
    owner = by
    if request.owner_principal_name:
        if request.owner_principal_type is None:  # Apache Kafka fails with a NullPointerException
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        owner = Principal(request.owner_principal_type, request.owner_principal_name)
    broker.spawn(ctx, request, _create(broker, ctx, request, owner, by))


def error_response(
    request: CreateDelegationTokenRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, CreateDelegationTokenResponse]:
    """The answer to a request whose handler failed. Kafka: CreateDelegationTokenRequest.getErrorResponse."""
    yield
    return _response(version, code, ANONYMOUS, ANONYMOUS)


async def _create(
    broker: Services, ctx: RequestContext, request: CreateDelegationTokenRequest, owner: Principal, by: Principal
) -> None:
    version = ctx.header.api_version
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers[: RENEWERS_MAX + 1]]
    try:
        check_token_requests_allowed(ctx)
        if owner != by and not authorize(broker, ctx, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(renewer.principal_type != USER_TYPE for renewer in renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        if len(renewers) > RENEWERS_MAX or sum(len(renewer.name) for renewer in renewers) > RENEWERS_LENGTH_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        manager = token_manager(broker)
    except KafkaError as error:
        ctx.reply(_response(version, error.code, owner, by))
        return
    token = await manager.create_token(owner, by, renewers, request.max_lifetime_ms)
    response = _response(version, ErrorCode.NONE, owner, by)
    response.issue_timestamp_ms = token.info.issue_ms
    response.expiry_timestamp_ms = token.info.expiry_ms
    response.max_timestamp_ms = token.info.max_ms
    response.token_id, response.hmac = token.info.token_id, token.hmac
    ctx.reply(response)


def _response(version: int, code: ErrorCode, owner: Principal, by: Principal) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.principal_type,
        principal_name=owner.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if version >= FIRST_REQUESTER_VERSION:
        response.token_requester_principal_type, response.token_requester_principal_name = by
    return response
