"""What a streaming job reads: topics of one cluster by Spark's kafka source, and the options that say which."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from odradek.protocol.expressions import compile_expression
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.common.options import ReadRange, connection_of, java_pattern, positive, range_of, topics


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """The topics, where reading begins, and how much a batch has."""

    connection: KafkaConnection
    topics: tuple[str, ...]  # empty: subscribe_pattern
    subscribe_pattern: str | None
    read_range: ReadRange
    max_offsets_per_trigger: int | None
    fail_on_data_loss: bool

    @property
    def name(self) -> str:
        """For the terminal."""
        return self.subscribe_pattern or ", ".join(self.topics)

    def options(self) -> dict[str, str]:
        """The options of Spark's kafka source. A batch query ignores maxOffsetsPerTrigger."""
        options = self.connection.source_options()
        if self.subscribe_pattern is not None:
            options["subscribePattern"] = self.subscribe_pattern
        else:
            options["subscribe"] = ",".join(self.topics)
        options |= self.read_range.source_options()
        options["failOnDataLoss"] = str(self.fail_on_data_loss).lower()
        if self.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        return options

    def reads(self, topic: str) -> bool:
        """Whether a topic is read: by its name, or by a pattern of Java, as far as Python's patterns say the same."""
        if self.subscribe_pattern is None:
            return topic in self.topics
        try:
            return compile_expression(self.subscribe_pattern).fullmatch(topic) is not None
        except ValueError:
            return False


def add_source_arguments(parser: argparse.ArgumentParser, records: str = "records") -> argparse._ArgumentGroup:
    """The group `what is read`; `source_of` reads it. `records`: what the job calls them."""
    group = parser.add_argument_group("what is read")
    which = group.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", type=topics, metavar="TOPIC,...", help="the topic, or several with commas")
    which.add_argument("--subscribe-pattern", type=java_pattern, metavar="REGEX", help="every topic that matches")
    group.add_argument(
        "--max-offsets-per-trigger", type=positive, metavar="N", help="at most so many records in one batch"
    )
    group.add_argument(
        "--fail-on-data-loss",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=f"stop when {records} were deleted before they were read (default: yes)",
    )
    return group


def source_of(parser: argparse.ArgumentParser, args: argparse.Namespace) -> StreamSource:
    """What the options of the cluster, of the range and of `add_source_arguments` say."""
    return StreamSource(
        connection=connection_of(args),
        topics=args.topic or (),
        subscribe_pattern=args.subscribe_pattern,
        read_range=range_of(parser, args),
        max_offsets_per_trigger=args.max_offsets_per_trigger,
        fail_on_data_loss=args.fail_on_data_loss,
    )
