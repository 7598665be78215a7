"""Each job for a stranger: its help, the examples in it, and one line when nobody listens at the address."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spark_jobs import archive_topic, restore_topic, validate_records
from spark_jobs.archive import archive_options, restore_options
from spark_jobs.common import reachable
from spark_jobs.validation import validation_options

Main = Callable[[Sequence[str]], int]
JOBS: dict[str, tuple[Main, Callable[[Sequence[str]], object]]] = {
    "archive_topic": (archive_topic.main, archive_options.parse_options),
    "restore_topic": (restore_topic.main, restore_options.parse_options),
    "validate_records": (validate_records.main, validation_options.parse_options),
}


@pytest.mark.parametrize("job", JOBS)
def test_help_has_examples_that_are_understood(job: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main, parse = JOBS[job]
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text, _, examples = capsys.readouterr().out.partition("examples:\n")
    assert text.startswith(f"usage: {job} ")
    for option in ("--bootstrap-servers", "--command-config", "--master", "--conf", "--log-level", "--dry-run"):
        assert option in text
    (tmp_path / "client.properties").write_text("")
    commands = examples.replace("\\\n", "").replace("client.properties", str(tmp_path / "client.properties"))
    assert len(commands.splitlines()) == 2
    for command in commands.splitlines():
        program, *arguments = shlex.split(command.strip().removeprefix("python -m "))
        assert program == f"spark_jobs.{job}"
        parse(arguments)


@pytest.mark.parametrize("job", JOBS)
def test_a_broker_that_does_not_listen_is_one_line_before_spark_starts(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(reachable.socket, "create_connection", refuse)
    monkeypatch.setattr("spark_jobs.common.job.StopRequest.install", lambda _: None)
    (tmp_path / "schema.json").write_text("{}")
    written = "--output-topic b --dead-letter-topic c"
    arguments = {
        "archive_topic": f"--topic a --output {tmp_path}/o --checkpoint {tmp_path}/c",
        "restore_topic": f"--archive {tmp_path}",
        "validate_records": f"--topic a --schema {tmp_path}/schema.json --dry-run {written}",
    }
    main, _ = JOBS[job]
    assert main([*arguments[job].split(), "--bootstrap-servers", "h:1"]) == 1
    assert capsys.readouterr().err == f"{job}: error: no broker can be reached (h:1: Connection refused)\n"
