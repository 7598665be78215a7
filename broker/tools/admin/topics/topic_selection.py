"""Which topics `odradek topics` acts on, and the reports that select some of them or of their partitions.

Kafka: TopicCommand.TopicService.getTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.topics.topic_filters import any_of
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.expressions import compile_expression

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.protocol.messages.metadata import MetadataResponseTopic

OVERRIDES: Final = "topics_with_overrides"
"""This report selects topics; the others select partitions."""

REPORTS: Final = {
    "under_replicated_partitions": "describe only partitions with too few replicas in sync",
    "unavailable_partitions": "describe only partitions without a leader that is alive",
    "under_min_isr_partitions": "describe only partitions with fewer replicas in sync than min.insync.replicas",
    "at_min_isr_partitions": "describe only partitions with just min.insync.replicas in sync",
    OVERRIDES: "describe only topics whose configs are not the default, and not their partitions",
}


def select(topics: Sequence[MetadataResponseTopic], options: argparse.Namespace) -> list[MetadataResponseTopic]:
    """The selected topics. A comma separates alternatives, as in kafka-topics; an id takes precedence over a name.

    Raises: CommandFailed for an invalid regular expression.
    """
    text = ".*" if options.topic is None else any_of(options.topic)
    try:
        pattern = compile_expression(text)
    except ValueError as error:
        raise CommandFailed(f"--topic {text} is no regular expression: {error}") from None
    return sorted(
        (
            topic
            for topic in topics
            if (topic.topic_id == options.topic_id if options.topic_id else pattern.fullmatch(topic.name or ""))
            and not (options.exclude_internal and topic.is_internal)
        ),
        key=lambda topic: topic.name or "",
    )


def existing(topics: Sequence[MetadataResponseTopic], options: argparse.Namespace) -> list[MetadataResponseTopic]:
    """The same. Raises: CommandFailed if there is none and --if-exists is not set."""
    found = select(topics, options)
    if not found and not options.if_exists:
        if options.topic_id:
            raise CommandFailed(f"TopicId '{uuid_to_text(options.topic_id)}' does not exist as expected")
        if options.topic is not None:
            raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return found
