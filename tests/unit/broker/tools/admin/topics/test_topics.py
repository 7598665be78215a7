from __future__ import annotations

import subprocess
import sys

import pytest

from odradek.broker.tools.admin.topics.topics import main
from odradek.protocol.codec.primitives import uuid_to_text
from tests.support.clusters.admin_cluster import TOPIC_ID, Command


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--list", "--describe"],
        ["--create"],
        ["--delete"],
        ["--alter", "--topic", "t"],
        ["--create", "--topic", "t", "--partitions", "0"],
        ["--create", "--topic", "t", "--replication-factor", "0"],
        ["--create", "--topic", "t", "--replication-factor", "32768"],
        ["--create", "--topic", "t", "--config", "x"],
        ["--create", "--topic", "t", "--replica-assignment", "1:1"],
        ["--create", "--topic", "t", "--replica-assignment", "1:2,3"],
        ["--create", "--topic", "t", "--replica-assignment", "x"],
        ["--create", "--topic", "t", "--replica-assignment", "1", "--partitions", "1"],
        ["--create", "--topic", "t", "--if-exists"],
        ["--create", "--topic", "t", "--exclude-internal"],
        ["--delete", "--topic", "t", "--if-not-exists"],
        ["--delete", "--topic", "t", "--partitions", "1"],
        ["--alter", "--topic", "t", "--partitions", "1", "--config", "a=b"],
        ["--alter", "--topic", "t", "--partitions", "1", "--replication-factor", "1"],
        ["--list", "--under-replicated-partitions"],
        ["--list", "--topic-id", uuid_to_text(TOPIC_ID)],
        ["--describe", "--topic-id", "x"],
        ["--describe", "--if-exists"],
        ["--describe", "--topics-with-overrides", "--unavailable-partitions"],
    ],
)
def test_usage(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(main, *arguments)
    assert ended.value.code == 2


def test_a_listing_loads_no_other_action() -> None:
    """`--list` has to start quickly, and dataclasses alone take a tenth of it."""
    program = "import sys, odradek.broker.tools.admin.topics.topics; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert not {"dataclasses", "odradek.broker.tools.admin.topics.topic_changes"} & {*names}
    assert "odradek.protocol.messages.describe_configs" not in names
