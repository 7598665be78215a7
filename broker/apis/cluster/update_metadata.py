"""UpdateMetadata (key 6), served: 0-8.

The controller sends the state of the cluster; the metadata cache holds it. v1-2: listeners. v3: the topic's name.
v5: grouped by topic, offline replicas, broker epoch. v7: topic ids. v8: the controller's kind.

Kafka: KafkaApis.handleUpdateMetadataRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.broker.apis.cluster.broker_epoch import is_stale
from odradek.controller.model.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: UpdateMetadataRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    apply(broker, request, ctx.header.api_version, ctx.reply)


def apply(
    broker: Services,
    request: UpdateMetadataRequest,
    version: int,
    respond: Callable[[UpdateMetadataResponse], None],
) -> None:
    """Update the cache; wake what waits for a topic to appear or vanish, or for a broker to die."""
    if is_stale(broker, request.broker_epoch):
        respond(UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
        return
    try:
        broker.replica_manager.controller_requests.check_metadata_epoch(request.controller_epoch)
    except KafkaError as error:
        respond(UpdateMetadataResponse(error_code=error.code))
        return
    alive = broker.metadata_cache.snapshot.nodes.keys()
    deleted = broker.metadata_cache.update(request)
    broker.first_metadata.arrived(names_partitions=bool(request.topic_states or request.ungrouped_partition_states))
    if deleted:
        broker.replica_manager.partitions.announce(deleted)
        broker.group_coordinator.on_partitions_deleted(deleted)
    broker.topic_waits.metadata_changed(
        [topic.topic_name for topic in request.topic_states]
        + [state.topic_name for state in request.ungrouped_partition_states]
    )
    broker.quotas.metadata_changed(broker.cluster_id, broker.metadata_cache)
    broker.replica_manager.high_watermark_reviews.brokers_died(alive - broker.metadata_cache.snapshot.nodes.keys())
    respond(UpdateMetadataResponse())
