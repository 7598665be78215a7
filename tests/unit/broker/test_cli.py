from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import odradek
from odradek.broker import cli, daemon
from odradek.broker.config.broker_config import BrokerConfig


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[BrokerConfig]:
    """The configurations `serve` would have run a broker with."""
    configs: list[BrokerConfig] = []
    monkeypatch.setattr(daemon, "run", lambda config, event_loop, ready_lines, faults: configs.append(config) or 0)
    for variable in [name for name in cli.os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(variable)
    return configs


def listeners(config: BrokerConfig) -> list[str]:
    return [str(end_point) for end_point in config.listeners.bound]


def test_serve_needs_nothing(served: list[BrokerConfig]) -> None:
    assert cli.main(["serve"]) == 0
    assert listeners(served[0]) == ["PLAINTEXT://127.0.0.1:9092"]
    assert served[0].log_dirs == ("odradek-data",)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--port", "0"], "PLAINTEXT://127.0.0.1:0"),
        (["--port", "19092"], "PLAINTEXT://127.0.0.1:19092"),
        (["--host", "0.0.0.0"], "PLAINTEXT://0.0.0.0:9092"),
        (["--host", "::1", "--port", "1"], "PLAINTEXT://[::1]:1"),
    ],
)
def test_host_and_port_stand_for_a_listener(served: list[BrokerConfig], arguments: list[str], expected: str) -> None:
    assert cli.main(["serve", *arguments]) == 0
    assert listeners(served[0]) == [expected]


def test_data_stands_for_log_dirs(served: list[BrokerConfig]) -> None:
    assert cli.main(["serve", "--data", "/data"]) == 0
    assert served[0].log_dirs == ("/data",)
    assert served[0].metadata_dir == "/data"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nofile.properties"], "odradek: Cannot read nofile.properties: No such file or directory"),
        (["--override", "broker.id=x"], "odradek: Invalid value x for configuration broker.id: Not a number"),
        (["--override", "broker.id"], "odradek: --override broker.id: expected key=value"),
        (["--port", "1", "--override", "listeners=PLAINTEXT://:2"], "--port and --host contradict"),
        (["--data", "a", "--override", "log.dirs=b"], "--data contradicts"),
        (
            ["--override", "ssl.key.password=canary", "--override", "security.inter.broker.protocol=SASL_SSL"],
            "inter.broker.listener.name must be a listener name",
        ),
    ],
)
def test_refusal_is_one_line_and_status_1(
    served: list[BrokerConfig], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(["serve", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert "canary" not in printed.err
    assert served == []


def test_unknown_keys_are_warned_of_once_each(served: list[BrokerConfig], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--override", "log.segement.bytes=canary", "--override", "foo=1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("'")[1] for line in lines] == ["foo", "log.segement.bytes"]
    assert all("] WARN " in line for line in lines)
    assert "canary" not in "".join(lines)


def test_an_unknown_key_of_the_environment_is_warned_of_without_its_value(
    served: list[BrokerConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xmx1g")
    monkeypatch.setenv("KAFKA_NIGHT_PASSWORD", "canary")
    assert cli.main(["serve"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "The configuration 'night.password' (from environment variable KAFKA_NIGHT_PASSWORD) is not known" in line
    assert "canary" not in line
    (config,) = served
    assert config.settings["night.password"] == "canary", "a class of the operator may need it"


def test_log_is_one_line_an_event_also_with_line_breaks_in_it(
    served: list[BrokerConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["serve"])
    logging.getLogger("odradek.test").info("from %s", "a client\n[2026-01-01 00:00:00,000] ERROR forged")
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "INFO from a client\\n[2026" in line


@pytest.mark.parametrize("arguments", [["serve", "--port", "70000"], ["serve", "--port", "x"], ["fly"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "variable", "value", "choices"),
    [
        (["serve"], "ODRADEK_LOG_LEVEL", "off", "TRACE, DEBUG, INFO, WARNING, ERROR"),
        (["serve", "--brokers", "1"], "ODRADEK_LOG_LEVEL", "off", "TRACE, DEBUG, INFO, WARNING, ERROR"),
        (["serve"], "ODRADEK_LOG_FORMAT", "xml", "text, json"),
        (["zookeeper"], "ODRADEK_LOG_LEVEL", "off", "TRACE, DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_variables_of_the_log_with_other_values_are_usage_errors(
    arguments: list[str],
    variable: str,
    value: str,
    choices: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    printed = capsys.readouterr().err
    assert "error: argument --log-" in printed
    assert f"(choose from {choices}; {variable} sets the default)" in printed


def test_the_level_and_the_format_of_the_log_are_known_in_capitals_and_without(
    served: list[BrokerConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODRADEK_LOG_LEVEL", "debug")
    monkeypatch.setenv("ODRADEK_LOG_FORMAT", "JSON")
    assert cli.main(["serve"]) == 0
    logging.getLogger("odradek.test").debug("seen")
    assert '"message": "seen"' in capsys.readouterr().err
    for variable in ("ODRADEK_LOG_LEVEL", "ODRADEK_LOG_FORMAT"):
        monkeypatch.setenv(variable, "")
    assert cli.main(["serve"]) == 0
    logging.getLogger("odradek.test").debug("not seen")
    logging.getLogger("odradek.test").info("seen")
    assert "INFO seen (odradek.test)" in capsys.readouterr().err.splitlines()[0]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"odradek {odradek.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 0
    assert "serve" in capsys.readouterr().out


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage:" in capsys.readouterr().out


def test_help_loads_no_event_loop() -> None:
    modules = {name for name, value in vars(cli).items() if isinstance(value, type(sys))}
    imported = {name for name in modules if not name.startswith("@")}  # those are of pytest
    assert imported == {"argparse", "os", "sys", "odradek"}


def test_the_help_says_what_to_do_first_and_names_each_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    printed = capsys.readouterr().out
    assert printed.index("first steps:") < printed.index("odradek serve ") < printed.index("run a broker:")
    listed = [name for names in cli._GROUPS.values() for name in names]
    assert sorted(listed) == sorted(["serve", "zookeeper", "health", "metadata", "completion", *cli._TOOLS])
    for name in listed:
        assert printed.count(f"\n  {name} ") == 1


def test_a_command_that_is_parsed_here_gets_no_parsers_of_the_others() -> None:
    """They take a thirtieth of the time until a broker listens."""
    for name in cli._ADD:
        parser = cli._parser(name)
        (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        assert [*commands.choices] == [name]


def test_collections_wait_until_the_broker_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were a tenth of its start."""
    collects: list[bool] = []
    monkeypatch.setattr(daemon, "run", lambda *arguments: collects.append(gc.isenabled()) or 0)
    assert cli.main(["serve", "--data", "/nowhere"]) == 0
    assert collects == [False]
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["completion", "bash"], 1),
        (["dump-log", "--files", "none.log"], 1),
        (["verify", "--json", "."], 2),
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_a_status(
    arguments: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with open("/dev/full", "w") as full, contextlib.redirect_stdout(full):
        assert cli.main(arguments) == status
    assert capsys.readouterr().err == "odradek: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("arguments", [["completion", "bash"], ["verify", "--json", "."]])
def test_output_that_nobody_reads_is_no_error(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    reads, writes = cli.os.pipe()
    cli.os.close(reads)
    with open(writes, "w") as unread, contextlib.redirect_stdout(unread):
        assert cli.main(arguments) == 0
    assert capsys.readouterr().err == ""


WITHOUT_STREAMS = """
import os, sys
from odradek.broker.cli import main
status = main(["completion", "bash"])
print("lost", file=sys.stderr)
with open(sys.argv[1], "w") as file:
    file.write(f"{status} {file.fileno() > 2} {sys.stdin.read()!r}")
"""


def test_closed_standard_streams_are_opened(tmp_path: Path) -> None:
    found = tmp_path / "found"
    command = [sys.executable, "-c", WITHOUT_STREAMS, str(found)]
    subprocess.run(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], check=True)
    assert found.read_text() == "0 True ''"


def test_each_command_describes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli._TOOLS:
        with pytest.raises(SystemExit, match="0"):
            cli.main([name, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: odradek {name} ")


def test_faults_of_the_command_line_are_read_before_the_start(
    served: list[BrokerConfig], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n  - action: drop\n    topik: t\n")
    assert cli.main(["serve", "--faults", str(file)]) == 1
    assert f"odradek: {file}:3: topik: is no key of drop" in capsys.readouterr().err
    assert cli.main(["serve", "--faults-listener", "0.0.0.0:0"]) == 1
    assert "0.0.0.0 is not loopback" in capsys.readouterr().err
    assert served == []
    assert cli.main(["serve", "--faults-listener", "127.0.0.1:0"]) == 0
    assert len(served) == 1
