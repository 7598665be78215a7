"""Each command for a cluster ends with one line when no broker is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker import cli

NOBODY = "127.0.0.1:1"
COMMANDS = [
    ["topics", "--list"],
    ["groups", "--list"],
    ["groups", "--describe", "--group", "g"],
    ["groups", "--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run"],
    ["groups", "--delete", "--all-groups"],
    ["configs", "--describe", "--entity-type", "topics"],
    ["configs", "--alter", "--user", "u", "--add-config", "producer_byte_rate=1"],
    ["quotas"],
    ["get-offsets"],
    ["log-dirs", "--describe"],
    ["transactions", "list"],
    ["transactions", "describe", "--transactional-id", "t"],
    ["producers", "--all-topics"],
    ["reassign", "--list"],
    ["elect-leaders", "--election-type", "preferred", "--all-topic-partitions"],
    ["api-versions"],
    ["cluster"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_is_one_line_and_status_1(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=0\n")
    assert cli.main([*command, "--bootstrap-server", NOBODY, "--command-config", str(config)]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("odradek: no bootstrap server answers: ")
    assert NOBODY in printed.err
    assert "Traceback" not in printed.err


def test_a_file_of_json_that_is_broken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "plan.json"
    broken.write_text("{")
    for command in (["delete-records", "--offset-json-file"], ["reassign", "--verify", "--reassignment-json-file"]):
        assert cli.main([*command, str(broken), "--bootstrap-server", NOBODY]) == 1
        printed = capsys.readouterr().err
        assert printed.startswith("odradek: ")
        assert printed.count("\n") == 1
