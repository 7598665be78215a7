from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.data.produce import main
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.unit.broker.tools.data.commands import Commands

A = TopicPartition("t", 0)


def written(run: Commands, topic: str = "t") -> list[tuple[bytes | None, bytes | None]]:
    return [(found.key, found.value) for found in run.cluster.records(TopicPartition(topic, 0))]


def test_lines(run: Commands) -> None:
    assert run(main, "-t", "t", stdin=b"a\n\nb") == (0, b"")
    assert written(run) == [(None, b"a"), (None, b""), (None, b"b")]


def test_keys_headers_and_timestamps(run: Commands) -> None:
    run(main, "-t", "t", "-K", ":", "-Z", "-H", "h=1", "-H", "n", "--timestamp", "5", stdin=b"k:v\nk:\nalone\n")
    assert written(run) == [(b"k", b"v"), (b"k", None), (None, b"alone")]
    (first, *_) = run.cluster.records(A)
    assert (first.headers, first.timestamp) == ((("h", b"1"), ("n", None)), 5)


def test_files(run: Commands, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(f"{name}1\n{name}2".encode())
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    run(main, "-t", "t", "-k", "key", *files)
    assert [value for _, value in written(run)] == [b"a1", b"a2", b"b1", b"b2"]
    run.cluster.logs.clear()
    run(main, "-t", "t", "-k", "key", "--whole-file", *files)
    assert written(run) == [(b"key", b"a1\na2"), (b"key", b"b1\nb2")]


def test_json_names_topics_and_partitions(run: Commands) -> None:
    run.cluster.create("other", 2)
    lines = b'{"topic":"other","partition":1,"key":"k","payload":{"base64":"/w=="},"ts":7}\n'
    run(main, "--json", "--keep-partitions", stdin=lines)
    (record,) = run.cluster.records(TopicPartition("other", 1))
    assert (record.key, record.value, record.timestamp) == (b"k", b"\xff", 7)
    run(main, "--json", "-t", "t", stdin=lines)
    assert written(run) == [(b"k", b"\xff")]


def test_count_and_tee(run: Commands) -> None:
    assert run(main, "-t", "t", "-c", "2", "-T", stdin=b"a\nb\nc\n") == (0, b"a\nb\nc\n")
    assert [value for _, value in written(run)] == [b"a", b"b"]


def test_input_after_the_last_record_is_not_read(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.tools.data.client.streams.READ_BYTES", 2)
    assert run(main, "-t", "t", "-c", "2", "-T", stdin=b"a\nb\nc\nd\n") == (0, b"a\nb\n")
    assert run(main, "-t", "t", "-c", "0", "-T", stdin=b"a\n") == (0, b"")


def test_arguments_that_are_no_utf_8(run: Commands) -> None:
    run(main, "-t", "t", "-k", "\udcff", "-H", "h=\udcfe", stdin=b"a\n")
    (record,) = run.cluster.records(A)
    assert (record.key, record.headers) == (b"\xff", (("h", b"\xfe"),))


def test_a_whole_file_is_bounded(
    run: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("odradek.broker.tools.data.produce.MAX_RECORD_BYTES", 3)
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    assert run(main, "-t", "t", "--whole-file", str(file))[0] == 0
    file.write_bytes(b"abcd")
    assert run(main, "-t", "t", "--whole-file", str(file))[0] == 1
    assert "has more than 3 bytes" in capsys.readouterr().err
    assert written(run) == [(None, b"abc")]


def test_timestamps_are_bounded(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, "-t", "t", "--timestamp", str(2**63 - 1), stdin=b"a\n")[0] == 0
    for timestamp in (str(2**63), "-1"):
        with pytest.raises(SystemExit):
            run(main, "-t", "t", "--timestamp", timestamp, stdin=b"a\n")
        assert "is not between 0 and" in capsys.readouterr().err


def test_one_record_after_the_other(run: Commands) -> None:
    run(main, "-t", "t", "--sync", stdin=b"a\nb\n")
    assert len(run.cluster.requests(ProduceRequest)) == 2


def test_malformed_input_ends_it_after_what_came_before(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = run(main, "-t", "t", "--property", "parse.key=true", stdin=b"k\tv\nbad\nk\tw\n")
    assert status == 1
    assert capsys.readouterr().err == "odradek: No key separator found on line number 2: 'bad'\n"
    assert written(run) == [(b"k", b"v")]


def test_records_that_are_refused(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    run.cluster.on(ProduceRequest, lambda broker_id, request: run.cluster.produce(broker_id, request, 87))
    assert run(main, "-t", "t", "-v", stdin=b"a\n")[0] == 1
    assert capsys.readouterr().err == (
        "0 record(s) written\n"
        "odradek: t-0: This record has failed the validation on broker and hence will be rejected.\n"
    )


def test_a_file_that_is_not_there(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, "-t", "t", "/nowhere")[0] == 1
    assert "No such file or directory: '/nowhere'" in capsys.readouterr().err


def test_what_was_read_before_an_error_is_written(run: Commands, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    assert run(main, "-t", "t", "--linger", "60000", str(tmp_path / "a"), "/nowhere")[0] == 1
    assert [value for _, value in written(run)] == [b"1", b"2"]


def test_records_without_a_topic(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, "--json", stdin=b"{}\n")[0] == 1
    assert "a record names no topic" in capsys.readouterr().err


def decisions(run: Commands) -> list[bool]:
    return [request.committed for request in run.cluster.requests(EndTxnRequest)]


@pytest.fixture
def transactional(run: Commands) -> Commands:
    run.cluster.on(AddPartitionsToTxnRequest, lambda broker_id, request: AddPartitionsToTxnResponse())
    run.cluster.on(EndTxnRequest, lambda broker_id, request: EndTxnResponse())
    return run


def test_one_transaction_for_everything(transactional: Commands) -> None:
    assert transactional(main, "-t", "t", "--transactional-id", "x", stdin=b"a\nb\n")[0] == 0
    assert decisions(transactional) == [True]


def test_transactions_of_a_size(transactional: Commands) -> None:
    transactional(main, "-t", "t", "--transactional-id", "x", "--transaction-size", "2", stdin=b"a\nb\nc\n")
    assert decisions(transactional) == [True, True]


def test_a_transaction_per_file(transactional: Commands, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1\n2\n")
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    transactional(main, "-t", "t", "--transactional-id", "x", "--transaction-per-file", *files)
    assert decisions(transactional) == [True, True]


def test_an_error_aborts_the_transaction(transactional: Commands) -> None:
    arguments = ("-t", "t", "--transactional-id", "x", "--sync", "--property", "parse.key=true")
    assert transactional(main, *arguments, stdin=b"k\tv\nbad\n")[0] == 1
    assert decisions(transactional) == [False]
