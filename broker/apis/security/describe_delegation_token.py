"""DescribeDelegationToken (key 41), served: 0-3. No owners: no tokens; null: those of all owners.

Kafka: KafkaApis.handleDescribeTokensRequest, DelegationTokenManager.filterToken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.security.token_requests import check_token_requests_allowed, requester, token_manager
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.delegation_token import Principal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.security.tokens.token_cache import DelegationToken
    from odradek.controller.model.delegation_token import TokenInformation
    from odradek.timer.sliced_work import Steps

FIRST_REQUESTER_VERSION: Final = 3


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeDelegationTokenRequest) -> Steps:
    check_token_requests_allowed(ctx)
    manager = token_manager(broker)
    owners: set[Principal] | None = None
    if request.owners is not None:
        owners = set()
        for owner in request.owners:
            yield None
            owners.add(Principal(owner.principal_type, owner.principal_name))
    response = DescribeDelegationTokenResponse(error_code=ErrorCode.NONE)
    if owners != set():
        for token in manager.cache.tokens():
            yield None
            if _is_shown(broker, ctx, owners, token.info):
                response.tokens.append(_described(token, ctx.header.api_version))
    ctx.reply(response)


def _is_shown(broker: Services, ctx: RequestContext, owners: set[Principal] | None, token: TokenInformation) -> bool:
    if owners is not None and owners.isdisjoint((token.owner, token.requester, *token.renewers)):
        return False
    return (
        token.is_owner_or_renewer(requester(ctx))
        or authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or authorize(broker, ctx, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(token: DelegationToken, version: int) -> DescribedDelegationToken:
    info = token.info
    described = DescribedDelegationToken(
        principal_type=info.owner.principal_type,
        principal_name=info.owner.name,
        issue_timestamp=info.issue_ms,
        expiry_timestamp=info.expiry_ms,
        max_timestamp=info.max_ms,
        token_id=info.token_id,
        hmac=token.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.principal_type, principal_name=renewer.name)
            for renewer in info.renewers
        ],
    )
    if version >= FIRST_REQUESTER_VERSION:
        described.token_requester_principal_type, described.token_requester_principal_name = info.requester
    return described
