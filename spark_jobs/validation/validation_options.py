"""The command line of `validate_records`, checked before a JVM is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.common.job import RunOptions
from spark_jobs.common.options import (
    add_connection_arguments,
    add_range_arguments,
    add_running_arguments,
    add_topic_creation_arguments,
    add_trigger_arguments,
    check_written,
    job_parser,
    run_options_of,
    topic,
    trigger_ms_of,
)
from spark_jobs.common.stream_source import StreamSource, add_source_arguments, source_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """One run of the job."""

    source: StreamSource
    schema: str
    key_schema: str | None
    allow_null_values: bool
    assert_formats: bool
    output_topic: str
    dead_letter_topic: str
    keep_partitions: bool
    create_topic: bool
    topic_config: dict[str, str]
    checkpoint: str | None  # None only in a dry run
    trigger_ms: int | None  # None: all that is there now, then end
    dry_run: bool
    run: RunOptions

    def source_options(self) -> dict[str, str]:
        """The options of Spark's kafka source."""
        return self.source.options() | {"includeHeaders": "true"}


def parse_options(arguments: Sequence[str] | None = None) -> ValidationOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    check_written(parser, args, "--checkpoint")
    if args.topic_config and not args.create_topic:
        parser.error("--topic-config belongs to --create-topic")
    if args.output_topic == args.dead_letter_topic:
        parser.error("--output-topic and --dead-letter-topic are the same")
    source = source_of(parser, args)
    for written in (args.output_topic, args.dead_letter_topic):
        if source.reads(written):
            parser.error(f"{written} would be read and written: its records would go round for ever")
    return ValidationOptions(
        source=source,
        schema=args.schema,
        key_schema=args.key_schema,
        allow_null_values=args.allow_null_values,
        assert_formats=args.assert_formats,
        output_topic=args.output_topic,
        dead_letter_topic=args.dead_letter_topic,
        keep_partitions=args.keep_partitions,
        create_topic=args.create_topic,
        topic_config=dict(args.topic_config),
        checkpoint=args.checkpoint,
        trigger_ms=trigger_ms_of(args),
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(
        "validate_records",
        "Validate records against a JSON Schema: good ones go on to a topic, bad ones to a dead-letter topic with the\n"
        "reason in a header. Counts by reason are printed; no record is lost, however a run ends.",
        "--topic clicks --schema click.json --output-topic clicks-valid --dead-letter-topic clicks-bad \\\n"
        "      --checkpoint ./validate-checkpoint --create-topic",
        "--topic clicks --schema click.json --output-topic clicks-valid --dead-letter-topic clicks-bad --dry-run",
    )
    add_connection_arguments(parser)
    add_source_arguments(parser)
    add_range_arguments(parser, ending=False)
    _add_rule_arguments(parser.add_argument_group("what is good"))
    _add_output_arguments(parser.add_argument_group("what is written"))
    running = add_running_arguments(parser)
    add_trigger_arguments(running)
    running.add_argument(
        "--dry-run", action="store_true", help="validate what is there now, print the counts, and write nothing"
    )
    return parser


def _add_rule_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--schema",
        required=True,
        metavar="FILE",
        help="JSON Schema of the values: draft 3, 4, 6, 7, 2019-09 or 2020-12 by its $schema (default: 2020-12)",
    )
    group.add_argument("--key-schema", metavar="FILE", help="JSON Schema of the keys (default: keys are not validated)")
    group.add_argument(
        "--allow-null-values", action="store_true", help="a record without a value is good: tombstones (default: bad)"
    )
    group.add_argument(
        "--assert-formats", action="store_true", help='"format" in a schema is checked (default: an annotation)'
    )


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output-topic", required=True, type=topic, metavar="TOPIC", help="of the good records")
    group.add_argument("--dead-letter-topic", required=True, type=topic, metavar="TOPIC", help="of the bad records")
    group.add_argument(
        "--keep-partitions",
        action="store_true",
        help="good records keep the number of their partition (default: by key, as a producer does)",
    )
    add_topic_creation_arguments(group, "as many partitions as the largest topic that is read")
    group.add_argument("--checkpoint", metavar="PATH", help="folder of the job's progress; one per job")
