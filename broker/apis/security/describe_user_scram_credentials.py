"""DescribeUserScramCredentials (key 50), served: 0.

Reads the credentials in the metadata tree, without their hashes.

Kafka: KafkaApis.handleDescribeUserScramCredentialsRequest.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.controller.admin.scram_credentials import UserCredentials, describe_scram_credentials, missing
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: DescribeUserScramCredentialsRequest) -> None:
    require(broker, ctx, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    broker.spawn(ctx, request, _describe(broker, ctx, request))


async def _describe(broker: Services, ctx: RequestContext, request: DescribeUserScramCredentialsRequest) -> None:
    users = None if request.users is None else Mapped(attrgetter("name"), request.users)
    found = await describe_scram_credentials(broker.controller.client, users)
    ctx.reply(DescribeUserScramCredentialsResponse(error_message="", results=Mapped(_result, found)))


def _result(found: UserCredentials | str) -> DescribeUserScramCredentialsResult:
    one = missing(found) if isinstance(found, str) else found
    return DescribeUserScramCredentialsResult(
        user=one.user,
        error_code=ErrorCode.NONE if one.error is None else one.error.code,
        error_message="" if one.error is None else one.error.message,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=iterations)
            for mechanism, iterations in one.iterations.items()
        ],
    )
