"""Which partitions the patterns on a command line select: `t`, `t.*:1`, `:0-3`.

A pattern is a regular expression for topics, then perhaps a colon and partitions: a number, `1-3` (without 3), `1-`,
`-3`. A comma separates patterns.

Kafka: GetOffsetShell.parseRuleSpec, TopicFilter.IncludeList, PartitionFilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Final

from odradek.broker.tools.command.comma_list import integers
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.expressions import compile_expression
from odradek.protocol.java_split import java_split
from odradek.protocol.topic_partition import TopicPartition

Selects = Callable[[TopicPartition], bool]
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?", re.ASCII)
_QUOTES: Final = "\"'"
_PARTITION_MAX: Final = 0x7FFFFFFF


def selects_any_of(patterns: str) -> Selects:
    """Whether one of the patterns selects a partition. Raises: CommandFailed for a pattern that is not valid."""
    rules = [_rule(text) for text in java_split(patterns)]
    return lambda tp: any(rule(tp) for rule in rules)


def selects(topics: str | None, partitions: str | None) -> Selects:
    """Whether a regular expression selects the topic, and a list of numbers the partition; None selects all.

    Raises: CommandFailed.
    """
    expression = _compiled(topics or ".*")
    try:
        numbers = set(integers(partitions)) if partitions else None
    except ValueError:
        raise CommandFailed(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {partitions}"
        ) from None
    return lambda tp: bool(expression.fullmatch(tp.topic)) and (numbers is None or tp.partition in numbers)


def _rule(text: str) -> Selects:
    match = _RULE.fullmatch(text)
    if match is None:
        raise CommandFailed(f"Invalid rule specification: {text}")
    expression = _compiled(match[1] or ".*")
    chosen: Container[int] = range(int(match[3] or 0), int(match[4] or _PARTITION_MAX))
    if match[2]:
        chosen = (int(match[2]),)
    return lambda tp: bool(expression.fullmatch(tp.topic)) and tp.partition in chosen


def any_of(text: str) -> str:
    """The regular expression of a list of topics: a comma separates alternatives, blanks and outer quotes do not count.

    Kafka: TopicFilter.
    """
    return text.strip().replace(",", "|").replace(" ", "").strip(_QUOTES)


def _compiled(text: str) -> re.Pattern[str]:
    cleaned = any_of(text)
    try:
        return compile_expression(cleaned)
    except ValueError:
        raise CommandFailed(f"{cleaned} is an invalid regex.") from None
