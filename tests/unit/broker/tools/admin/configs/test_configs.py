from __future__ import annotations

import pytest

from odradek.broker.tools.admin.configs.configs import main
from tests.support.clusters.admin_cluster import Command


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--describe", "--alter", "--topic", "t"],
        ["--describe", "--topic", "t", "--add-config", "a=1"],
        ["--describe", "--topic", "t", "--delete-config", "a"],
        ["--alter", "--topic", "t"],
        ["--alter", "--topic", "t", "--delete-config", ","],
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments)


def test_entities_are_checked_before_a_broker_is_asked(command: Command) -> None:
    assert command(main, "--describe") == (1, [], "odradek: At least one entity type must be specified\n")
