from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser, file_text


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("ä", encoding="utf-8")
    assert file_text(str(tmp_path / "f")) == "ä"
    (tmp_path / "f").write_bytes(b"\xff")
    for name in ("f", "missing"):
        with pytest.raises(argparse.ArgumentTypeError):
            file_text(str(tmp_path / name))


def test_a_command_takes_one_action_and_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_parser("test", "Tests.", examples="  odradek test --list")
    add_actions(parser, {"list": "prints", "delete": "deletes"})
    add_client_options(parser)
    options = parser.parse_args(["--list", "--json", "--bootstrap-server", "h:1"])
    assert (options.action, options.json, options.table, options.bootstrap_server) == ("list", True, False, "h:1")
    for refused in ([], ["--list", "--delete"], ["--list", "--json", "--table"]):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(refused)
    assert parser.format_help().endswith("examples:\n  odradek test --list\n")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("admin.groups.groups", ["--list"]),
        ("data.produce", ["-t", "t"]),
        ("data.consume", ["-t", "t", "--timeout-ms", "1"]),
        ("data.consume", ["-G", "g", "t", "--timeout-ms", "1"]),
    ],
)
def test_a_command_runs_without_slow_imports(module: str, arguments: list[str]) -> None:
    """asyncio alone would take as long as all of `odradek groups --list`."""
    source = (
        f"import argparse, sys; argparse.ArgumentParser(); common = {{*sys.modules}}; "
        f"from odradek.broker.tools.{module} import main; "
        f"main([*{arguments}, '--bootstrap-server', '127.0.0.1:1']); "
        "slow = {'asyncio', 'dataclasses', 'shutil', 'ssl', 'rich', 'json', 'logging', 'encodings.idna'}; "
        "assert not slow & ({*sys.modules} - common)"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=30, stderr=subprocess.DEVNULL)
