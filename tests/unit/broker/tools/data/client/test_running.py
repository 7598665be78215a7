from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.client.data_client import DataClient
from odradek.broker.tools.data.client.interrupts import Interrupted, Interrupts
from odradek.broker.tools.data.client.running import run_with_client


def status(error: Exception | None, settings: dict[str, str] | None = None) -> int:
    async def work(client: DataClient, interrupts: Interrupts) -> None:
        if error is not None:
            raise error

    return run_with_client(lambda: (work, settings or {}), "h:1", client_id="c", also=("acks",))


def test_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(None) == 0
    assert status(Interrupted(2)) == 130
    assert capsys.readouterr().err == ""
    assert status(CommandFailed("failed")) == 1
    assert status(OSError("broken")) == 1
    assert capsys.readouterr().err == "odradek: failed\nodradek: broken\n"


def test_a_closed_pipe_is_left_to_the_command_line() -> None:
    with pytest.raises(BrokenPipeError):
        status(BrokenPipeError())


def test_settings_that_nobody_reads_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    status(None, {"acks": "1", "foo": "2"})
    assert capsys.readouterr().err == "odradek: warning: the configuration 'foo' is not used by this command\n"
