"""One type of quota: what each client uses, by how much it exceeds its quota, and the connections muted for it.

A handler records what a request uses, and gets the time by which the client is ahead of its quota. It answers at once
with that time and mutes the connection for as long (KIP-219): the broker reads nothing from it meanwhile.

Nothing is counted before the first quota is set.

Kafka: ClientQuotaManager, ThrottledChannel, ThrottleCallback.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypedDict

from odradek.broker.quotas.client_quota_callback import CallbackQuotas
from odradek.broker.quotas.client_sensors import ClientSensors, SensorTable
from odradek.broker.quotas.quota_levels import QuotaLevels
from odradek.timer.periodic import PeriodicTask
from odradek.timer.sampled_rate import Rate, as_int, throttle_time_ms
from odradek.timer.task import TimerTask

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.quotas.client_quota_callback import ClientQuotaCallback
    from odradek.broker.quotas.quota_entity import ClientQuotaEntity, ClientQuotaType
    from odradek.broker.quotas.quota_levels import Tags
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

EXPIRATION_CHECK_MS: Final = 30_000
"""How often silent clients are looked for. Kafka: Metrics.ExpireSensorTask."""


class QuotaSettings(TypedDict, total=False):
    """What all types of quotas may be given besides a clock and a timer."""

    window_count: int
    window_ms: int
    callback: ClientQuotaCallback | None


class ClientQuotaManager:
    """The quotas of one type. A rate is measured over `window_count` windows of `window_ms`."""

    def __init__(
        self,
        quota_type: ClientQuotaType,
        clock: Clock,
        timer: SystemTimer,
        *,
        window_count: int = 11,
        window_ms: int = 1_000,
        callback: ClientQuotaCallback | None = None,
    ) -> None:
        self.quota_type = quota_type
        self.is_enabled = False
        """Whether a quota was ever set. Callers need no other call while it is False."""
        self.queue_size = 0
        """Connections that are muted because of this quota."""
        self._clock = clock
        self._timer = timer
        self._window_count = window_count
        self._window_ms = window_ms
        self._levels = QuotaLevels() if callback is None else CallbackQuotas(callback, quota_type, clock)
        self._limits_version = 0
        self.sensors = SensorTable(self._make_sensors)
        if callback is not None:
            self._enable()

    def record_and_get_throttle_time_ms(self, principal: str, client_id: str, amount: float) -> int:
        """Count what a client uses. Returns the time after which it is within its quota; 0 or less if it is now."""
        if not self.is_enabled:
            return 0
        now_ms = self._clock.monotonic_ms()
        sensors = self._sensors_of(principal, client_id, now_ms)
        sensors.record(amount, now_ms)
        bound = sensors.bound
        if bound is None:
            return 0
        rate = sensors.rate.measure(now_ms)
        if rate <= bound:
            return 0
        return as_int(self._bounded(throttle_time_ms(rate, bound, sensors.rate.window_size_ms(now_ms))))

    def unrecord(self, principal: str, client_id: str, amount: float) -> None:
        """Take back what was counted: a throttled fetch gets an empty response. Kafka: unrecordQuotaSensor."""
        self.record_no_throttle(principal, client_id, -amount)

    def record_no_throttle(self, principal: str, client_id: str, amount: float) -> None:
        """Count what a client uses; its next request is throttled for it if necessary."""
        if self.is_enabled:
            now_ms = self._clock.monotonic_ms()
            self._sensors_of(principal, client_id, now_ms).record(amount, now_ms)

    def max_value_in_quota_window(self, principal: str, client_id: str) -> float | None:
        """The largest amount that does not exceed the quota of a client that has used nothing; None: no limit."""
        if not self.is_enabled:
            return None
        bound = self._sensors_of(principal, client_id, self._clock.monotonic_ms()).bound
        return None if bound is None else bound * (self._window_count - 1) * (self._window_ms // 1_000)

    def throttle(self, ctx: RequestContext, duration_ms: int) -> None:
        """Mute the connection of the request, if the duration is positive."""
        if duration_ms <= 0:
            return
        now_ms = self._clock.monotonic_ms()
        sensors = self._sensors_of(ctx.connection.principal, ctx.header.client_id, now_ms)
        sensors.record_throttle_time(duration_ms, now_ms)
        throttled = ThrottledConnection(self, ctx, duration_ms)
        self.queue_size += 1
        self._timer.add(throttled)
        ctx.connection.throttles.add(throttled)

    def update_quota(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Set the quota of an entity; None removes it."""
        if bound is None:
            logger.info("Removing %s quota for %s", self.quota_type.value, entity)
        else:
            logger.info("Changing %s quota for %s to %s", self.quota_type.value, entity, bound)
        self._levels.update_quota(entity, bound)
        self.limits_changed()
        if not self.is_enabled:
            self._enable()

    def limits_changed(self) -> None:
        """Every client gets its limit anew with its next request. Kafka: updateQuotaMetricConfigs."""
        self._limits_version += 1

    def tag_names(self, tags: Tags) -> dict[str, str]:
        """The tags of sensors with their names."""
        return self._levels.tag_names(tags)

    def _enable(self) -> None:
        self.is_enabled = True
        PeriodicTask(
            self._timer, f"expiration of {self.quota_type.value} sensors", EXPIRATION_CHECK_MS, self._expire
        ).start()

    def _sensors_of(self, principal: str, client_id: str, now_ms: int) -> ClientSensors:
        """The sensors of a client, with its quota as it is now."""
        sensors = self.sensors.get_or_create(self._levels.tags(principal, client_id), now_ms)
        if self._levels.is_reset_required():
            self.limits_changed()
        if sensors.limits_version != self._limits_version:
            sensors.bound = self._levels.limit(sensors.tags)
            sensors.limits_version = self._limits_version
        return sensors

    def _make_sensors(self, tags: Tags, now_ms: int) -> ClientSensors:
        return ClientSensors(tags, Rate(window_count=self._window_count, window_ms=self._window_ms), now_ms)

    def _bounded(self, duration_ms: int) -> int:
        return duration_ms

    def _expire(self) -> None:
        self.sensors.expire(self._clock.monotonic_ms())


class ThrottledConnection(TimerTask):
    """One muted connection. Implements `network.throttles.Throttle`."""

    __slots__ = ("_manager", "_throttles")

    def __init__(self, manager: ClientQuotaManager, ctx: RequestContext, duration_ms: int) -> None:
        super().__init__(duration_ms)
        self._manager = manager
        self._throttles = ctx.connection.throttles

    def run(self) -> None:
        self._manager.queue_size -= 1
        self._throttles.remove(self)

    def abandon(self) -> None:
        """The connection is closed."""
        self.cancel()
        self._manager.queue_size -= 1
