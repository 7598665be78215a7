"""The throttle times of answers, and the muting of their connections.

`RequestThrottle` observes the requests from the first quota on, and charges each of them when it is answered. Produce
and Fetch are charged by their handlers, because their bytes count too and a throttled Fetch is empty. So are
CreateTopics, CreatePartitions and DeleteTopics. The larger of two throttle times counts.

Kafka: RequestHandlerHelper, KafkaApis.handleProduceRequest, KafkaApis.handleFetchRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from odradek.protocol.api import ApiKey

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.quotas.client_quota_manager import ClientQuotaManager
    from odradek.broker.quotas.controller_mutation_quota_manager import ControllerMutationQuota
    from odradek.broker.quotas.quota_managers import QuotaManagers
    from odradek.protocol.codec.schema import Request, Response

EXEMPT: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
    }
)
"""APIs of brokers, which no quota limits unless the request is refused: a client could send them without end.

Kafka: RequestHandlerHelper.sendResponseExemptThrottle, RequestHandlerHelper.handleError.
"""


class ThrottledResponse(Protocol):
    """A response with a throttle time."""

    throttle_time_ms: int


class RequestThrottle:
    """Charges the requests that no handler has charged. Implements `network.request.RequestObserver`."""

    def __init__(self, quotas: QuotaManagers) -> None:
        self._quotas = quotas

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        """Does nothing: the request's time is not measured yet."""

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        times = ctx.times
        if times is None or times.is_charged:
            return
        request = self._quotas.request
        is_exempt = ctx.header.api_key in EXEMPT and not times.is_refused_to_client
        if is_exempt or response is None:
            request.charge_exempt(ctx)
            return
        throttle_ms = request.charge(ctx)
        if throttle_ms > 0:
            _throttle(request, ctx, throttle_ms)
            if hasattr(response, "throttle_time_ms"):
                cast("ThrottledResponse", response).throttle_time_ms = throttle_ms

    def request_completed(self, ctx: RequestContext) -> None:
        self._quotas.request.charge_rest(ctx)


def throttle_produce(quotas: QuotaManagers, ctx: RequestContext, *, acks: int) -> int:
    """Charge a Produce that is about to be answered. Returns the throttle time of the answer in ms.

    Without an answer (acks=0) no quota of processor time holds, but those of bytes do.
    """
    bandwidth_ms = quotas.produce.record_and_get_throttle_time_ms(
        ctx.connection.principal, ctx.header.client_id, ctx.size
    )
    request_ms = 0
    if acks == 0:
        quotas.request.charge_exempt(ctx)
    else:
        request_ms = quotas.request.charge(ctx)
    return _throttle_longer(quotas.produce, bandwidth_ms, quotas.request, request_ms, ctx)


def throttle_fetch(quotas: QuotaManagers, ctx: RequestContext, size_in_bytes: int) -> int:
    """Charge the response of a consumer's Fetch. Returns the throttle time in ms; above 0, nothing is fetched."""
    fetch, principal, client_id = quotas.fetch, ctx.connection.principal, ctx.header.client_id
    request_ms = quotas.request.charge(ctx)
    bandwidth_ms = fetch.record_and_get_throttle_time_ms(principal, client_id, size_in_bytes)
    if max(bandwidth_ms, request_ms) > 0:
        fetch.unrecord(principal, client_id, size_in_bytes)
    return _throttle_longer(fetch, bandwidth_ms, quotas.request, request_ms, ctx)


def throttle_mutation(quotas: QuotaManagers, ctx: RequestContext, quota: ControllerMutationQuota) -> int:
    """Charge a change of topics that is about to be answered. Returns the throttle time of the answer in ms.

    Kafka: RequestHandlerHelper.sendResponseMaybeThrottleWithControllerQuota.
    """
    mutation_ms = quota.throttle_time_ms
    return _throttle_longer(quotas.controller_mutation, mutation_ms, quotas.request, quotas.request.charge(ctx), ctx)


def _throttle_longer(
    first: ClientQuotaManager, first_ms: int, request: ClientQuotaManager, request_ms: int, ctx: RequestContext
) -> int:
    """Mute the connection for the longer time, which counts for its manager; with equal times, for that of requests."""
    throttle_ms = max(first_ms, request_ms, 0)
    if throttle_ms:
        _throttle(first if first_ms > request_ms else request, ctx, throttle_ms)
    return throttle_ms


def _throttle(manager: ClientQuotaManager, ctx: RequestContext, throttle_ms: int) -> None:
    if ctx.times is not None:
        ctx.times.throttle_ms = throttle_ms
    manager.throttle(ctx, throttle_ms)
