"""DescribeCluster (key 60), served: 0-1. v1: the endpoint type, of which brokers (1) is served.

Kafka: KafkaApis.handleDescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import cluster_operations
from odradek.broker.apis.leaders import reachable_nodes
from odradek.controller.model.broker_info import NO_CONTROLLER
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

ENDPOINT_BROKER = 1
ENDPOINT_CONTROLLER = 2


def handle(broker: Services, ctx: RequestContext, request: DescribeClusterRequest) -> None:
    if request.endpoint_type == ENDPOINT_CONTROLLER:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != ENDPOINT_BROKER:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    nodes = list(reachable_nodes(broker, ctx))
    controller_id = broker.metadata_cache.snapshot.controller_id
    if controller_id is None or all(node.broker_id != controller_id for node in nodes):
        controller_id = NO_CONTROLLER
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, ctx)
    ctx.reply(response)
