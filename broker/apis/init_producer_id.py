"""InitProducerId (key 22), served: 0-5.

Without a transactional id any broker gives out a fresh producer id with epoch 0. v2: flexible encoding. v3: the client
may present the id and epoch it has (KIP-360). v4: PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def handle(broker: Services, ctx: RequestContext, request: InitProducerIdRequest) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def respond(result: int | ErrorCode) -> None:
        if isinstance(result, ErrorCode):
            ctx.reply(InitProducerIdResponse(error_code=result, producer_id=-1, producer_epoch=-1))
        else:
            ctx.reply(InitProducerIdResponse(producer_id=result, producer_epoch=0))

    broker.producer_ids.next(respond)


def error_response(
    request: InitProducerIdRequest, version: int, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
