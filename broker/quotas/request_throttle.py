"""The throttle times of answers, and the muting of their connections.

Kafka: RequestHandlerHelper, KafkaApis.handleProduceRequest, KafkaApis.handleFetchRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.network.request import RequestContext
    from odradek.broker.quotas.quota_managers import QuotaManagers


def throttle_produce(quotas: QuotaManagers, ctx: RequestContext) -> int:
    """Count a Produce that is about to be answered, also with acks=0. Returns the throttle time of the answer in ms."""
    produce = quotas.produce
    throttle_ms = produce.record_and_get_throttle_time_ms(ctx.connection.principal, ctx.header.client_id, ctx.size)
    produce.throttle(ctx, throttle_ms)
    return max(throttle_ms, 0)


def throttle_fetch(quotas: QuotaManagers, ctx: RequestContext, size_in_bytes: int) -> int:
    """Count the response of a consumer's Fetch. Returns the throttle time in ms; above 0, nothing is fetched."""
    fetch, principal, client_id = quotas.fetch, ctx.connection.principal, ctx.header.client_id
    throttle_ms = fetch.record_and_get_throttle_time_ms(principal, client_id, size_in_bytes)
    if throttle_ms > 0:
        fetch.unrecord(principal, client_id, size_in_bytes)
        fetch.throttle(ctx, throttle_ms)
    return max(throttle_ms, 0)
