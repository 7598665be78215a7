"""The README's quick start as a new user does it: a fresh clone, its command, its snippet, a consumed message."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess

README = (REPOSITORY / "README.md").read_text()
START_TIMEOUT_S = 20


def snippets(language: str) -> list[str]:
    """The code blocks of that language in the section about the quick start."""
    section = README.partition("## Quick start")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed, and nothing else of this checkout."""
    directory = tmp_path_factory.mktemp("quickstart") / "odradek"
    subprocess.run(["git", "clone", "--quiet", f"file://{REPOSITORY}", str(directory)], check=True, timeout=60)
    return directory


@pytest.fixture
def port(clone: Path) -> Iterator[int]:
    """`odradek serve` of the clone, as `make run` starts it, on a free port instead of 9092."""
    number = free_port()
    process = ManagedProcess(
        [sys.executable, "-m", "odradek", "serve", "--port", str(number)],
        clone / "serve.log",
        cwd=clone,
        env={"PYTHONPATH": str(clone / "src")},
    )
    process.start()
    process.wait_for_line(r"\[KafkaServer id=\d+\] started", START_TIMEOUT_S)
    assert (clone / "odradek-data").is_dir(), "the data goes to ./odradek-data"
    yield number
    assert process.terminate() == 0


def test_from_nothing_to_a_consumed_message(port: int, clone: Path) -> None:
    """The README's Python snippet runs as it stands (but for the port) and prints the message it sent."""
    [snippet] = snippets("python")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", snippet.replace("9092", str(port))],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "0 b'k' b'hello'"


def test_the_first_record_by_the_commands(port: int, clone: Path) -> None:
    """The two commands of the README, but for the port."""
    [commands] = [found for found in snippets("") if "produce" in found]
    for command in ("produce", "consume"):
        commands = commands.replace(
            f".venv/bin/odradek {command}", f"{sys.executable} -m odradek {command} -b 127.0.0.1:{port}"
        )
    done = subprocess.run(
        ["sh", "-ec", commands],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(clone / "src")},
    )
    lines = done.stdout.splitlines()
    assert lines == [f"{offset} k hello" for offset in range(max(1, len(lines)))], "with those of other tests"


def test_the_commands_of_the_readme_exist(clone: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (clone / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= targets
    shown = subprocess.run(
        [sys.executable, "-m", "odradek", "serve", "--help"],
        cwd=clone,
        env={"PYTHONPATH": str(clone / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    ).stdout
    for option in set(re.findall(r"^odradek serve .*?(--[a-z-]+)", README, re.MULTILINE)):
        assert option in shown


def test_a_port_that_is_taken_is_one_line_and_status_1(port: int, clone: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "serve", "--port", str(port), "--data", str(tmp_path / "data")],
        cwd=clone,
        env={"PYTHONPATH": str(clone / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr
