"""The script for bash is asked as the shell asks it. Somebody who types:
`tests/conformance/daemon/installation/test_completion.py` and, in zsh and fish,
`tests/soak/consoles/test_completion_soak.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.tools.completion import SHELLS, places, script

ASK = 'source {file}; COMP_WORDS=({words}); COMP_CWORD={last}; _odradek; printf "%s\\n" "${{COMPREPLY[@]}}"'


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    file = tmp_path_factory.mktemp("completion") / "odradek.bash"
    file.write_text(script("bash", cli._full_parser()), encoding="utf-8")

    def ask(*words: str) -> list[str]:
        """What is offered for the last word."""
        quoted = " ".join(f"'{word}'" for word in ("odradek", *words))
        program = ASK.format(file=file, words=quoted, last=len(words))
        done = subprocess.run(
            ["bash", "--norc", "-c", program],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            cwd=file.parent,
        )
        assert done.stderr == ""
        return sorted({line for line in done.stdout.splitlines() if line})

    return ask


def test_commands_are_offered(complete: Callable[..., list[str]]) -> None:
    offered = complete("")
    assert {"serve", *cli._TOOLS} <= {*offered}
    assert complete("gr") == ["groups"]
    assert complete("transactions", "l") == ["list"]
    assert "copy" in complete("metadata", "")


def test_options_are_offered(complete: Callable[..., list[str]]) -> None:
    assert complete("groups", "--des") == ["--describe"]
    assert complete("groups", "--bootstrap-server", "h:1", "--to-o") == ["--to-offset"]
    assert complete("transactions", "--json", "find-hanging", "--max") == ["--max-transaction-timeout"]
    assert complete("--ver") == ["--version"]


def test_values_are_offered(complete: Callable[..., list[str]]) -> None:
    assert complete("elect-leaders", "--election-type", "") == ["preferred", "unclean"]
    assert {*SHELLS} <= {*complete("completion", "")}


def test_places_are_those_of_the_parsers() -> None:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    commands = parser.add_subparsers()
    child = commands.add_parser("do", help="does it")
    child.add_argument("-o", "--out", metavar="FILE", help="where\n  to")
    child.add_argument("kind", choices=("a", "b"))
    child.add_argument("path", metavar="DIR")
    top, below = places(parser)
    assert (top.key, dict(top.commands), top.takes_files) == ("", {"do": "does it"}, False)
    assert [flag.names for flag in top.flags] == [["-h", "--help"]]
    assert (below.key, below.choices, below.takes_files) == (" do", ["a", "b"], True)
    assert below.flags[1] == (["-o", "--out"], "where to", True, [], True)


def test_each_command_that_prints_facts_has_json() -> None:
    without = [
        place.key
        for place in places(cli._full_parser())
        if not place.commands and "--json" not in [name for flag in place.flags for name in flag.names]
    ]
    assert without == [" serve", " health", " zookeeper", " completion"]


def hostile_parser() -> argparse.ArgumentParser:
    """Its help has what shells have a meaning for."""
    parser = argparse.ArgumentParser(prog="p")
    parser.add_subparsers().add_parser("do", help="it's done")
    for index, text in enumerate(("it's", 'a "word"', "a:b", "$HOME `id` \\", "(a) [b] {c} *")):
        parser.add_argument(f"--o{index}", help=text)
    return parser


def test_help_texts_with_quotes_do_not_break_a_script(tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text(script("bash", hostile_parser()))
    done = subprocess.run(["bash", "-n", file], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in SHELLS:
        assert cli.main(["completion", shell]) == 0
        assert capsys.readouterr().out == script(shell, cli._full_parser())


def test_no_command_imports_what_completes() -> None:
    source = (
        "import sys; from odradek.broker import cli; cli._parser(); "
        "tools = {name for name in sys.modules if name.startswith('odradek.broker.tools.')}; "
        "assert tools == {'odradek.broker.tools.command', 'odradek.broker.tools.command.help_format'}"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=30)
