"""What clients use, counted by the tags of their quota, in bounded memory.

Kafka drops the state of a client an hour after its last request. A client can invent a client id for each request, so
here the number of tags and the characters of their names are bounded too: the least recently used tags are dropped.

Kafka: ClientSensors, SensorAccess, Sensor, Metrics.ExpireSensorTask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.timer.sampled_rate import Average, Rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.broker.quotas.quota_levels import Tags

INACTIVE_SENSOR_EXPIRATION_MS: Final = 3_600_000
"""Kafka: ClientQuotaManager.InactiveSensorExpirationTimeSeconds."""

MAX_SENSORS: Final = 10_000
"""Tags that one manager keeps; each takes up to 2 KB."""

MAX_TAG_CHARACTERS: Final = 4 * 1024 * 1024
"""Characters of their names. A client id may have 32,767 bytes."""


class ClientSensors:
    """What the clients with the same tags use."""

    __slots__ = ("bound", "last_record_ms", "limits_version", "rate", "tags", "throttle_times")

    def __init__(self, tags: Tags, rate: Rate, now_ms: int) -> None:
        self.tags = tags
        self.rate = rate
        """Units per second: bytes, percent of a second, or partitions."""
        self.bound: float | None = None
        """The quota; None: no limit."""
        self.limits_version = -1
        """The version of the quotas that `bound` was taken from."""
        self.last_record_ms = now_ms
        self.throttle_times: Average | None = None
        """Throttle times in ms; None until the first."""

    def record(self, amount: float, now_ms: int) -> None:
        self.rate.record(amount, now_ms)
        self.last_record_ms = now_ms

    def record_throttle_time(self, throttle_time_ms: int, now_ms: int) -> None:
        if self.throttle_times is None:
            self.throttle_times = Average(window_count=2, window_ms=30_000)  # as Kafka's metrics without a quota
        self.throttle_times.record(throttle_time_ms, now_ms)


class SensorTable:
    """The sensors of one manager, in the order of their last use. `make` makes those of new tags."""

    def __init__(
        self,
        make: Callable[[Tags, int], ClientSensors],
        *,
        max_sensors: int = MAX_SENSORS,
        max_tag_characters: int = MAX_TAG_CHARACTERS,
    ) -> None:
        self._make = make
        self._max_sensors = max_sensors
        self._max_tag_characters = max_tag_characters
        self._sensors: dict[Tags, ClientSensors] = {}
        self._tag_characters = 0

    def __len__(self) -> int:
        return len(self._sensors)

    def __iter__(self) -> Iterator[ClientSensors]:
        """All sensors. For metrics: the table may not change meanwhile."""
        return iter(self._sensors.values())

    def get_or_create(self, tags: Tags, now_ms: int) -> ClientSensors:
        found = self._sensors.pop(tags, None)
        if found is None:
            found = self._make(tags, now_ms)
            self._tag_characters += _characters(tags)
            while self._sensors and self._is_full:
                self._forget(next(iter(self._sensors)))
        self._sensors[tags] = found
        return found

    def expire(self, now_ms: int) -> None:
        """Drop the clients that were silent for an hour."""
        while self._sensors:
            tags, oldest = next(iter(self._sensors.items()))
            if now_ms - oldest.last_record_ms <= INACTIVE_SENSOR_EXPIRATION_MS:
                return
            self._forget(tags)

    @property
    def _is_full(self) -> bool:
        return len(self._sensors) >= self._max_sensors or self._tag_characters > self._max_tag_characters

    def _forget(self, tags: Tags) -> None:
        del self._sensors[tags]
        self._tag_characters -= _characters(tags)


def _characters(tags: Tags) -> int:
    return sum(map(len, tags))
