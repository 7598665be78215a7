"""AlterUserScramCredentials (key 51), served: 0. Changes the SCRAM credentials of users, on the controller alone.

Kafka: KafkaApis.handleAlterUserScramCredentialsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.controller.admin.scram_credential_changes import Deletion, Upsertion, alter_scram_credentials
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped, Pairs
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AlterUserScramCredentialsRequest) -> None:
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    require(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterUserScramCredentialsRequest) -> None:
    altered = await alter_scram_credentials(
        broker.controller.client,
        Mapped(_upsertion, request.upsertions),
        Mapped(_deletion, request.deletions),
    )
    results = Pairs(_result)
    async for user, error in in_turns(altered.items()):
        results.add(user, error)
    ctx.reply(AlterUserScramCredentialsResponse(results=results))


def _upsertion(asked: ScramCredentialUpsertion) -> Upsertion:
    return Upsertion(asked.name, asked.mechanism, asked.iterations, bytes(asked.salt), bytes(asked.salted_password))


def _deletion(asked: ScramCredentialDeletion) -> Deletion:
    return Deletion(asked.name, asked.mechanism)


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user)
    return AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)
