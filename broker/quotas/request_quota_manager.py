"""Quotas of processor time: the percentage of the event loop's time that the requests of a client take (KIP-124).

100 percent is all the time of the loop. Kafka counts the time of its request and network threads, in percent of one
thread. The time until the answer is made may throttle the request. What follows, encoding and sending, is counted
afterwards, and so may throttle the next one. A client is throttled for one window at most.

Requests between brokers are exempt: their time is counted, but not limited.

Kafka: ClientRequestQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from odradek.broker.quotas.client_quota_manager import ClientQuotaManager, QuotaSettings
from odradek.broker.quotas.quota_entity import ClientQuotaType
from odradek.timer.sampled_rate import Rate

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

NANOS_TO_PERCENTAGE_PER_SECOND: Final = 100 / 1_000_000_000


class ClientRequestQuotaManager(ClientQuotaManager):
    """The manager of request quotas. It counts the requests to which the dispatcher has given their times."""

    def __init__(self, clock: Clock, timer: SystemTimer, **settings: Unpack[QuotaSettings]) -> None:
        super().__init__(ClientQuotaType.REQUEST, clock, timer, **settings)
        self.exempt_rate = Rate(window_count=2, window_ms=30_000)
        """Percent of the loop's time for exempt requests, over Kafka's windows of metrics."""

    def charge(self, ctx: RequestContext) -> int:
        """Count the time of a request whose answer is about to be made. Returns the throttle time in ms; at least 0."""
        percentage = _uncounted_percentage(ctx)
        if percentage is None:
            return 0
        return self.record_and_get_throttle_time_ms(ctx.connection.principal, ctx.header.client_id, percentage)

    def charge_exempt(self, ctx: RequestContext) -> None:
        """Count the time of a request that no quota limits."""
        percentage = _uncounted_percentage(ctx)
        if percentage is not None and ctx.times is not None:
            ctx.times.is_exempt = True
            self._record_exempt(percentage)

    def charge_rest(self, ctx: RequestContext) -> None:
        """Count the time that the request has taken since it was answered. Kafka: recordNetworkThreadTimeCallback."""
        is_exempt = ctx.times is not None and ctx.times.is_exempt
        percentage = _uncounted_percentage(ctx)
        if percentage is None:
            return
        if is_exempt:
            self._record_exempt(percentage)
        else:
            self.record_no_throttle(ctx.connection.principal, ctx.header.client_id, percentage)

    def _record_exempt(self, percentage: float) -> None:
        self.exempt_rate.record(percentage, self._clock.monotonic_ms())

    def _bounded(self, duration_ms: int) -> int:
        return min(duration_ms, self._window_ms)


def _uncounted_percentage(ctx: RequestContext) -> float | None:
    """The time of the request that is not counted yet, in percent of a second; it counts from now on."""
    times = ctx.times
    if times is None:
        return None
    loop_ns = times.loop_ns
    uncounted_ns = loop_ns - times.charged_ns
    times.charged_ns = loop_ns
    times.is_charged = True
    return uncounted_ns * NANOS_TO_PERCENTAGE_PER_SECOND
