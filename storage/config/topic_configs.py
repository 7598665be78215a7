"""The configs of the topics that have logs here: the broker's settings with each topic's overrides.

It also records which partitions of a topic have logs, so that a config change visits only the logs of that topic.

Invariant: with its last log, a topic is removed from here, so that a new topic of the same name gets its own configs.
A topic without logs has overrides only while its first log may be on the way.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odradek.storage.config.log_config import TOPIC_CONFIG_SYNONYMS, LogConfig, usable_overrides
from odradek.storage.config.message_format import why_ignored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from odradek.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)

_SETTINGS: Final = (
    "inter.broker.protocol.version",
    *(synonym.name for synonyms in TOPIC_CONFIG_SYNONYMS.values() for synonym in synonyms),
)


class TopicConfigs:
    """The LogConfig of each topic, created on first use."""

    __slots__ = ("_broker_settings", "_configs", "_default", "_log_counts", "_overrides", "_updated", "_without_logs")

    def __init__(self, broker_settings: Mapping[str, str]) -> None:
        self._broker_settings = _of_topics(broker_settings)
        self._overrides: dict[str, dict[str, str]] = {}
        self._configs: dict[str, LogConfig] = {}
        self._default: LogConfig | None = None
        self._log_counts: dict[str, Counter[TopicPartition]] = {}
        """The number of logs of each partition, including those in failed directories."""
        self._updated: list[set[str]] = []
        self._without_logs: set[str] = set()
        """Topics with overrides and without logs."""

    def of(self, topic: str) -> LogConfig:
        config = self._configs.get(topic)
        if config is None:
            overrides = usable_overrides(topic, self._overrides.get(topic, {}))
            config = self._configs[topic] = LogConfig.from_props(self._broker_settings, overrides)
        return config

    @property
    def default(self) -> LogConfig:
        """The broker's settings alone. Kafka: LogManager.currentDefaultConfig."""
        if self._default is None:
            self._default = LogConfig.from_props(self._broker_settings, {})
        return self._default

    def override(self, topic: str, overrides: Mapping[str, str]) -> bool:
        """Set all overrides of a topic; returns whether they changed."""
        for updated in self._updated:
            updated.add(topic)
        if overrides == self._overrides.get(topic, {}):
            return False
        ignored = why_ignored(topic, overrides, self._broker_settings)
        if ignored is not None:
            log.warning(ignored)
        self._overrides[topic] = dict(overrides)
        self._configs.pop(topic, None)
        if topic not in self._log_counts:
            self._without_logs.add(topic)
        return True

    def forget_without_logs(self) -> None:
        """Forget the overrides of topics without logs: those of each topic of the cluster would come together here."""
        for topic in self._without_logs:
            self._configs.pop(topic, None)
            self._overrides.pop(topic, None)
        self._without_logs.clear()

    @contextmanager
    def updated_meanwhile(self) -> Iterator[Set[str]]:
        """The topics whose overrides are set from now on until the end of the block.

        Whoever reads overrides in the block may have read older ones than these. Kafka: LogManager.topicConfigUpdated.
        """
        updated: set[str] = set()
        self._updated.append(updated)
        try:
            yield updated
        finally:
            self._updated = [other for other in self._updated if other is not updated]

    def set_broker_settings(self, broker_settings: Mapping[str, str]) -> bool:
        """Set the broker's settings; returns whether the defaults of topic configs changed."""
        settings = _of_topics(broker_settings)
        if settings == self._broker_settings:
            return False
        self._broker_settings = settings
        self._default = None
        self._configs.clear()
        return True

    def partitions_with_logs(self, topic: str) -> Iterable[TopicPartition]:
        return self._log_counts.get(topic, {}).keys()

    def log_added(self, topic_partition: TopicPartition) -> None:
        self._log_counts.setdefault(topic_partition.topic, Counter())[topic_partition] += 1
        self._without_logs.discard(topic_partition.topic)

    def log_removed(self, topic_partition: TopicPartition) -> None:
        """Remove a log; with its last log, the topic's configs are removed."""
        topic = topic_partition.topic
        counts = self._log_counts[topic]
        counts[topic_partition] -= 1
        if not counts[topic_partition]:
            del counts[topic_partition]
        if not counts:
            del self._log_counts[topic]
            self._configs.pop(topic, None)
            self._overrides.pop(topic, None)


def _of_topics(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are defaults of topic configs."""
    return {name: broker_settings[name] for name in _SETTINGS if name in broker_settings}
