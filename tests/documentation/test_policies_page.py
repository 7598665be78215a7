"""The examples of docs/policies.md are modules that a broker loads, and they refuse what the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.policy_setup import load_policies
from odradek.controller.admin.policies import (
    AlterConfigMetadata,
    ConfigResource,
    CreateTopicMetadata,
    Policies,
    PolicyViolation,
)
from odradek.timer.clock import ManualClock
from tests.documentation.pages import REPOSITORY

EXAMPLE = re.compile(r"`([\w.]+)=(\w+:\w+)` with this file as `(\w+)\.py`:\n\n```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Policies]:
    settings = {"team.max.partitions": "3"}
    modules = []
    for key, path, module, code in EXAMPLE.findall((REPOSITORY / "docs" / "policies.md").read_text("utf-8")):
        (tmp_path / f"{module}.py").write_text(code)
        settings[key] = path
        modules.append(module)
    assert sorted(settings) == [
        "alter.config.policy.class.name",
        "create.topic.policy.class.name",
        "team.max.partitions",
    ]
    monkeypatch.syspath_prepend(str(tmp_path))
    yield load_policies(BrokerConfig(settings), ManualClock())
    for module in modules:
        del sys.modules[module]


@pytest.mark.parametrize(
    ("topic", "partitions", "assignment", "refusal"),
    [
        ("sales.orders", 3, None, None),
        ("__consumer_offsets", 50, None, None),
        ("sales.orders", None, {0: [1], 1: [1]}, None),
        ("orders", 1, None, "The name orders has no prefix of a team, such as sales.orders"),
        ("sales.orders", 4, None, "4 partitions are more than the 3 that a topic may have"),
        ("sales.orders", None, {number: [1] for number in range(4)}, "4 partitions are more than"),
    ],
)
def test_the_example_of_new_topics(
    policies: Policies, topic: str, partitions: int | None, assignment: dict[int, list[int]] | None, refusal: str | None
) -> None:
    metadata = CreateTopicMetadata(topic, partitions, None if partitions is None else 1, assignment, {})
    if refusal is None:
        policies.validate_create_topic(metadata)
    else:
        with pytest.raises(PolicyViolation, match=refusal):
            policies.validate_create_topic(metadata)


def test_the_example_of_configs(policies: Policies) -> None:
    topic = ConfigResource("TOPIC", "t")
    for value in ("-1", "3600000", None):
        policies.validate_alter_config(AlterConfigMetadata(topic, {"retention.ms": value}))
    policies.validate_alter_config(AlterConfigMetadata(ConfigResource("BROKER", "1"), {"retention.ms": "1"}))
    with pytest.raises(PolicyViolation, match=r"^t: retention\.ms=3599999 is less than an hour$"):
        policies.validate_alter_config(AlterConfigMetadata(topic, {"retention.ms": "3599999"}))
