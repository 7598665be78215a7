"""Valid topic names, and the internal topics.

Dots and underscores are both legal, but metric names replace dots by underscores, so two names that differ only in
these collide.

Kafka: Topic.validate, Topic.isInternal, Topic.hasCollision.
"""

from __future__ import annotations

import re
from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, "__share_group_state"})

NAME_LENGTH_MAX: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS


def validate_topic_name(topic: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) with Kafka's reason."""
    reason = _why_invalid(topic)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_valid_topic_name(topic: str) -> bool:
    return _why_invalid(topic) is None


def _why_invalid(topic: str) -> str | None:
    if not topic:
        return "the empty string is not allowed"
    if topic in (".", ".."):
        return f"'{topic}' is not allowed"
    if len(topic) > NAME_LENGTH_MAX:
        return f"the length of '{topic}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(topic) is None:
        return f"'{topic}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def has_collision_chars(topic: str) -> bool:
    return "_" in topic or "." in topic


class TopicNames:
    """The existing topics by the name that metrics have for them.

    Kafka compares a new name with all others. Here an update costs what has changed since the one before.
    """

    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._by_metric_name: dict[str, set[str]] = {}

    def update(self, topics: set[str]) -> None:
        """These topics exist now. The set must not change later."""
        for topic in self._topics - topics:
            name = metric_name(topic)
            self._by_metric_name[name].discard(topic)
            if not self._by_metric_name[name]:
                del self._by_metric_name[name]
        for topic in topics - self._topics:
            self._by_metric_name.setdefault(metric_name(topic), set()).add(topic)
        self._topics = topics

    def colliding(self, topic: str) -> list[str]:
        """The existing topics that would have the same metric names, sorted."""
        return sorted(self._by_metric_name.get(metric_name(topic), ()))


def metric_name(topic: str) -> str:
    return topic.replace(".", "_")
