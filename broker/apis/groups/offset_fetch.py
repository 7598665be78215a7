"""OffsetFetch (key 9), served: 0-9.

v0 reads offsets kept under /consumers in the metadata tree. v2: null topics mean all; a top-level error. v5: leader
epochs. v7: require_stable (KIP-447). v8: many groups in one request. v9: member id and epoch of the new consumer
protocol.

Kafka: KafkaApis.handleOffsetFetchRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.groups.described_offsets import FIRST_BATCHED_VERSION, fetch_of_groups, fetch_of_one_group
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, in_slices, now_or_in_slices
from odradek.coordinator.group.offsets.offset_api import INVALID_OFFSET
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
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
    unknown = set()
    for topic in request.topics or ():
        yield None
        for index in topic.partition_indexes:
            if not broker.metadata_cache.contains_partition(topic.name, index):
                unknown.add((topic.name, index))
            yield None

    def answer(response: OffsetFetchResponse) -> Steps:
        for topic in response.topics:
            yield None
            for part in topic.partitions:
                yield None
                is_refused = part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                if (topic.name, part.partition_index) in unknown and not is_refused:
                    part.committed_offset = INVALID_OFFSET
                    part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ctx.reply(response)

    def respond(response: OffsetFetchResponse) -> None:
        now_or_in_slices(broker, ctx, request, answer(response), is_small=ctx.size <= SMALL_REQUEST_BYTES)

    if is_restricted:
        yield from fetch_of_one_group(broker, ctx, request, respond)
    else:
        yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, respond)
