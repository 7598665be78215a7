"""AddOffsetsToTxn (key 25), served: 0-4.

Adds the partition of `__consumer_offsets` that holds the group to the transaction. v2: PRODUCER_FENCED. v3: flexible
encoding. v4: TRANSACTION_ABORTABLE, which is never answered here.

Kafka: KafkaApis.handleAddOffsetsToTxnRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.transactions.fenced_producer import error_for_version
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC
from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import ErrorCode

FIRST_FENCED_VERSION = 2


def handle(broker: Services, ctx: RequestContext, request: AddOffsetsToTxnRequest) -> None:
    require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)

    def added(error: ErrorCode) -> None:
        code = error_for_version(error, ctx.header.api_version, FIRST_FENCED_VERSION)
        ctx.reply(AddOffsetsToTxnResponse(error_code=code))

    broker.transaction_coordinator.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [TopicPartition(GROUP_METADATA_TOPIC, broker.group_coordinator.partition_for(request.group_id))],
        added,
    )
