"""What archive_topic does before Spark is there, and how it words what went wrong."""

from __future__ import annotations

import pytest

from spark_jobs import archive_topic
from spark_jobs.archive_topic import JobError, check_reachable, main, reason, schema_of
from spark_jobs.connector import SetupError

EVENTS = ["--topic", "events", "--output", "out", "--checkpoint", "cp"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: org.apache.kafka.common.errors."
            "UnknownTopicOrPartitionException: This server does not host it. SQLSTATE: XXKST\n\tat x",
            "UnknownTopicOrPartitionException: This server does not host it.",
        ),
        ("the output o holds files", "the output o holds files"),
        ("\n[PARSE_SYNTAX_ERROR] Syntax error. SQLSTATE: 42601 (line 1)", None),
        ("", "no reason given"),
    ],
)
def test_a_reason_is_one_line_without_its_wrapping(message: str, expected: str | None) -> None:
    assert reason(message) == (expected if expected is not None else message.strip())


def test_a_server_must_have_a_port() -> None:
    with pytest.raises(JobError, match=r"--bootstrap-servers: 'localhost' is not HOST:PORT"):
        check_reachable("localhost")


def test_the_first_server_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    class Connection:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    def connect(address: tuple[str, int], _timeout: float) -> Connection:
        asked.append(address)
        if address[1] == 1:
            raise ConnectionRefusedError(111, "Connection refused")
        return Connection()

    monkeypatch.setattr(archive_topic.socket, "create_connection", connect)
    check_reachable("a:1, [::1]:2,c:3")
    assert asked == [("a", 1), ("::1", 2)]
    with pytest.raises(JobError, match=r"no broker can be reached \(a:1: Connection refused; b:1: Connection"):
        check_reachable("a:1,b:1")


def test_main_ends_with_one_line_when_spark_cannot_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise SetupError("no Spark")

    monkeypatch.setattr(archive_topic, "check_reachable", lambda _: None)
    monkeypatch.setattr(archive_topic, "spark_session", no_spark)
    monkeypatch.setattr(archive_topic.StopRequest, "install", lambda _: None)
    assert main(EVENTS) == 1
    assert capsys.readouterr().err == "archive_topic: error: no Spark\n"


def test_a_schema_in_ddl_is_left_to_spark() -> None:
    assert schema_of(None) is None
    assert schema_of("id BIGINT") == "id BIGINT"


def test_a_schema_in_json_is_read() -> None:
    field = '{"name": "id", "type": "long", "nullable": true, "metadata": {}}'
    schema = schema_of(f'{{"type": "struct", "fields": [{field}]}}')
    assert schema.simpleString() == "struct<id:bigint>"


@pytest.mark.parametrize("text", ["{", '{"type": "struct"}', '{"type": "struct", "fields": [3]}'])
def test_json_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(JobError, match=r"--schema is no schema in Spark's JSON form"):
        schema_of(text)
