"""ConsumerGroupDescribe (key 69), served: 0.

The consumer rebalance protocol (KIP-848) does not exist on brokers in ZooKeeper mode. Apache Kafka 3.9 advertises the
API there nevertheless and answers it with UNSUPPORTED_VERSION, and so does Odradek.

Kafka: KafkaApis.handleConsumerGroupDescribe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest


def handle(broker: Services, ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> None:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
