"""What mutes a connection: the throttles of a client that is ahead of its quotas.

A muted connection dispatches no request, and its reading is paused like that of a held one. Answers are sent.

Kafka: KafkaChannel.ChannelMuteState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Throttle(Protocol):
    """One reason why a connection is muted. Implemented by `quotas.client_quota_manager.ThrottledConnection`."""

    def abandon(self) -> None:
        """The connection was closed before the time was over."""


class Throttles:
    """The throttles of one connection. `on_unmuted` is called when the last one is removed."""

    __slots__ = ("_is_closed", "_on_unmuted", "active")

    def __init__(self, on_unmuted: Callable[[], None]) -> None:
        self._on_unmuted = on_unmuted
        self._is_closed = False
        self.active: tuple[Throttle, ...] = ()
        """The connection is muted while there are any."""

    def add(self, throttle: Throttle) -> None:
        if self._is_closed:
            throttle.abandon()
        else:
            self.active = (*self.active, throttle)

    def remove(self, throttle: Throttle) -> None:
        """The time of the throttle is over."""
        self.active = tuple(other for other in self.active if other is not throttle)
        if not self.active:
            self._on_unmuted()

    def close(self) -> None:
        """The connection is closed: its throttles end, also those that are still to come."""
        self._is_closed = True
        self._on_unmuted = _nothing
        active, self.active = self.active, ()
        for throttle in active:
            throttle.abandon()


def _nothing() -> None:
    """Takes the place of `on_unmuted` when the connection is closed."""
