from __future__ import annotations

import pytest

from odradek.broker.tools.admin.topics.topic_filters import Selects, selects, selects_any_of
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.topic_partition import TopicPartition

ALL = [TopicPartition(topic, partition) for topic in ("t", "tu", "v") for partition in range(4)]


def selected(is_selected: Selects) -> list[str]:
    return [str(tp) for tp in ALL if is_selected(tp)]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("t", ["t-0", "t-1", "t-2", "t-3"]),
        ("t:1", ["t-1"]),
        ("t.*:0", ["t-0", "tu-0"]),
        (":3", ["t-3", "tu-3", "v-3"]),
        ("t:1-3", ["t-1", "t-2"]),
        ("t:2-", ["t-2", "t-3"]),
        ("v:-2", ["v-0", "v-1"]),
        ("v:0,t:3", ["t-3", "v-0"]),
        ("t:1,", ["t-1"]),
        ("nope", []),
    ],
)
def test_patterns(patterns: str, expected: list[str]) -> None:
    assert selected(selects_any_of(patterns)) == expected


@pytest.mark.parametrize("patterns", ["t:x", "t:1:2", "t:1-2-3", "[", "a{9999999999}", "t:²"])
def test_patterns_that_are_not_valid_are_refused(patterns: str) -> None:
    with pytest.raises(CommandFailed, match=r"Invalid rule|invalid regex"):
        selects_any_of(patterns)


def test_topics_and_partitions() -> None:
    assert selected(selects(None, None)) == [str(tp) for tp in ALL]
    assert selected(selects("'t, v'", "0,3,")) == ["t-0", "t-3", "v-0", "v-3"]
    with pytest.raises(CommandFailed, match="--partitions expects a comma separated list"):
        selects("t", "0,x")
