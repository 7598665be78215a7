"""Quotas of changes of topics: partitions that a client may create and delete per second (KIP-599).

A client has a bucket of tokens, one for each partition, which fills at the rate of its quota. A *strict* quota accepts
a topic of any size while the bucket is not negative, and refuses all others with THROTTLING_QUOTA_EXCEEDED. A
*permissive* quota, for older versions of the requests, accepts everything, and mutes the connection until the bucket is
no more negative.

Kafka: ControllerMutationQuotaManager, StrictControllerMutationQuota, PermissiveControllerMutationQuota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack, cast

from odradek.broker.quotas.client_quota_manager import ClientQuotaManager, QuotaSettings
from odradek.broker.quotas.client_sensors import ClientSensors
from odradek.broker.quotas.quota_entity import ClientQuotaType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timer.sampled_rate import Rate, as_int
from odradek.timer.token_bucket import TokenBucket, token_throttle_time_ms

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.quotas.quota_levels import Tags
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


NO_QUOTA: Final = float(2**63 - 1)
"""Tokens per second without a quota: the bucket of a client fills at once, and its debt is gone when a quota is set
again. Kafka: ClientQuotaManager.quotaLimit.
"""


class MutationSensors(ClientSensors):
    """`rate` is for metrics only."""

    __slots__ = ("bucket",)

    def __init__(self, tags: Tags, bucket: TokenBucket, now_ms: int) -> None:
        super().__init__(tags, Rate(window_count=2, window_ms=30_000), now_ms)
        self.bucket = bucket

    def record(self, amount: float, now_ms: int) -> None:
        super().record(amount, now_ms)
        self.bucket.record(amount, self._tokens_per_second, now_ms)

    def throttle_time_ms(self, now_ms: int) -> int | None:
        """The time until the bucket is no more negative; None if it is not."""
        tokens = self.bucket.tokens(self._tokens_per_second, now_ms)
        return as_int(token_throttle_time_ms(tokens, self._tokens_per_second)) if tokens < 0 else None

    @property
    def _tokens_per_second(self) -> float:
        return NO_QUOTA if self.bound is None else self.bound


class ControllerMutationQuota:
    """The quota of one request. Without a quota anywhere, `sensors` is None, and everything is accepted."""

    __slots__ = ("_clock", "_is_strict", "_recorded_ms", "_sensors", "_throttle_time_ms")

    def __init__(self, clock: Clock, sensors: MutationSensors | None, *, is_strict: bool) -> None:
        self._clock = clock
        self._sensors = sensors
        self._is_strict = is_strict
        self._recorded_ms = self._throttle_time_ms = 0

    def record(self, partitions: int) -> None:
        """Count partitions that are about to be created or deleted.

        Raises: KafkaError THROTTLING_QUOTA_EXCEEDED if the quota is strict and exhausted; they are not counted then.
        """
        sensors = self._sensors
        if sensors is None:
            return
        now_ms = self._clock.monotonic_ms()
        if not self._is_strict:
            sensors.record(partitions, now_ms)
        throttle_time_ms = sensors.throttle_time_ms(now_ms)
        if throttle_time_ms is not None:
            self._throttle_time_ms, self._recorded_ms = throttle_time_ms, now_ms
            if self._is_strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        elif self._is_strict:
            sensors.record(partitions, now_ms)

    @property
    def throttle_time_ms(self) -> int:
        """The throttle time of the answer: that of the last exceeded record, less the time that has passed since."""
        return max(0, self._throttle_time_ms - (self._clock.monotonic_ms() - self._recorded_ms))


class ControllerMutationQuotaManager(ClientQuotaManager):
    """The manager of these quotas."""

    def __init__(self, clock: Clock, timer: SystemTimer, **settings: Unpack[QuotaSettings]) -> None:
        super().__init__(ClientQuotaType.CONTROLLER_MUTATION, clock, timer, **settings)

    def new_quota_for(self, ctx: RequestContext, *, strict_since_version: int | None) -> ControllerMutationQuota:
        """The quota for a request, which is strict from a version on; None: never."""
        sensors: MutationSensors | None = None
        if self.is_enabled:
            now_ms = self._clock.monotonic_ms()
            found = self._sensors_of(ctx.connection.principal, ctx.header.client_id, now_ms)
            sensors = cast("MutationSensors", found)
        is_strict = strict_since_version is not None and ctx.header.api_version >= strict_since_version
        return ControllerMutationQuota(self._clock, sensors, is_strict=is_strict)

    def _make_sensors(self, tags: Tags, now_ms: int) -> ClientSensors:
        return MutationSensors(tags, TokenBucket(window_count=self._window_count, window_ms=self._window_ms), now_ms)
