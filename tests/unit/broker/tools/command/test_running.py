from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.machine.startup_error import drop_output
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.output import Output
from odradek.broker.tools.command.running import config_of, run_command

OPTIONS = argparse.Namespace(json=True, table=False, bootstrap_server=None, command_config=None)


def raising(error: BaseException) -> Callable[[Output], None]:
    def body(out: Output) -> None:
        out.result([{"done": 1}], ())
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "status", "printed"),
    [
        (CommandFailed("it failed"), 1, "odradek: it failed\n"),
        (TimeoutError("too late"), 1, "odradek: too late\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_one_line_and_the_json_is_whole(
    error: BaseException, status: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(OPTIONS, raising(error)) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ('[\n{"done": 1}\n]\n', printed)


def test_a_closed_pipe_is_for_the_caller() -> None:
    with pytest.raises(BrokenPipeError):
        run_command(OPTIONS, raising(BrokenPipeError()))


def test_output_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w") as full, contextlib.redirect_stdout(full):
        assert run_command(OPTIONS, lambda out: None) == 1
        drop_output()
    assert capsys.readouterr().err == "odradek: [Errno 28] No space left on device\n"


def test_a_command_that_ends_has_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(OPTIONS, lambda out: None) == 0
    assert capsys.readouterr().out == "[]\n"


def test_the_configuration_is_that_of_the_options(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\n")
    assert config_of(OPTIONS).client_id == "odradek-admin"
    named = argparse.Namespace(bootstrap_server="h:1", command_config=str(file), json=True, table=False)
    assert (config_of(named).client_id, config_of(named).bootstrap) == ("me", "h:1")
