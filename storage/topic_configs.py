"""The configs of the topics that have logs here: the broker's settings with each topic's overrides.

Invariant: a deleted topic leaves nothing behind; one made anew under the name begins with its own configs.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from odradek.storage.config import LogConfig
from odradek.storage.message_format import why_ignored

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)


class TopicConfigs:
    """What holds for each topic; put together when it is first asked for."""

    __slots__ = ("_broker_settings", "_configs", "_log_counts", "_overrides")

    def __init__(self, broker_settings: Mapping[str, str]) -> None:
        self._broker_settings = dict(broker_settings)
        self._overrides: dict[str, dict[str, str]] = {}
        self._configs: dict[str, LogConfig] = {}
        self._log_counts: Counter[str] = Counter()
        """How many logs of a topic there are, in directories that work or have failed."""

    def of(self, topic: str) -> LogConfig:
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = LogConfig.from_props(self._broker_settings, self._overrides.get(topic, {}))
        return config

    def override(self, topic: str, overrides: Mapping[str, str]) -> None:
        """A topic has these overrides from now on, and no others."""
        ignored = why_ignored(topic, overrides, self._broker_settings)
        if ignored is not None:
            log.warning(ignored)
        self._overrides[topic] = dict(overrides)
        self._configs.pop(topic, None)

    def set_broker_settings(self, broker_settings: Mapping[str, str]) -> None:
        self._broker_settings = dict(broker_settings)
        self._configs.clear()

    def log_added(self, topic: str) -> None:
        self._log_counts[topic] += 1

    def log_removed(self, topic: str) -> None:
        """With its last log, what was said about a topic is forgotten."""
        self._log_counts[topic] -= 1
        if not self._log_counts[topic]:
            del self._log_counts[topic]
            self._configs.pop(topic, None)
            self._overrides.pop(topic, None)
