"""OffsetFetch (key 9), served: 0-9.

v0 reads offsets kept under /consumers in the metadata tree. v2: null topics mean all; a top-level error. v5: leader
epochs. v7: require_stable (KIP-447). v8: many groups in one request. v9: member id and epoch of the new consumer
protocol.

Kafka: KafkaApis.handleOffsetFetchRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.groups.described_offsets import FIRST_BATCHED_VERSION, fetch_of_groups, fetch_of_one_group
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import in_slices
from odradek.coordinator.group.offsets.offset_api import INVALID_OFFSET
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import OffsetFetchResponseTopic

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchResponse,
        OffsetFetchResponsePartition,
    )
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetFetchRequest) -> Steps:
    version = ctx.header.api_version
    is_restricted = broker.authorizer is not None
    if version > 0:
        if is_restricted and version >= FIRST_BATCHED_VERSION:
            yield from fetch_of_groups(broker, ctx, request)
        elif is_restricted:
            yield from fetch_of_one_group(broker, ctx, request, ctx.reply)
        else:
            yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, ctx.reply)
        return

    def respond(response: OffsetFetchResponse) -> None:
        response.topics = Mapped(partial(_of_existing_partitions, broker), response.topics)
        ctx.reply(response)

    if is_restricted:
        yield from fetch_of_one_group(broker, ctx, request, respond)
    else:
        yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, respond)


def _of_existing_partitions(broker: Services, topic: OffsetFetchResponseTopic) -> OffsetFetchResponseTopic:
    partitions = Mapped(partial(_of_existing, broker, topic.name), topic.partitions)
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


def _of_existing(broker: Services, name: str, part: OffsetFetchResponsePartition) -> OffsetFetchResponsePartition:
    """In version 0 only a partition of the cluster has an offset."""
    is_refused = part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not is_refused and not broker.metadata_cache.contains_partition(name, part.partition_index):
        part.committed_offset = INVALID_OFFSET
        part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return part
