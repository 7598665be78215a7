from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.tools.dump_log import dump_log
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from tests.support.disks.logs import batch, marker

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / f"{5:020d}.log"
    file.write_bytes(bytes(batch(b"v", base_offset=5)) + bytes(batch(b"w", base_offset=9)))
    return file


def run(capsys: Captured, *arguments: str) -> tuple[int, list[str], list[str]]:
    status = dump_log.main(arguments)
    printed = capsys.readouterr()
    return status, printed.out.splitlines(), printed.err.splitlines()


def test_every_file_by_its_kind_and_gaps_at_the_end(capsys: Captured, log: Path) -> None:
    unknown = log.with_name("partition.metadata")
    status, out, err = run(capsys, "--files", f"{unknown},{log.parent}//{log.name},leader-epoch,", "--deep-iteration")
    assert status == 0
    assert out[:3] == [f"Dumping {unknown}", f"Dumping {log}", "Log starting offset: 5"]
    assert out[-1] == "Dumping leader-epoch"
    assert err == [
        f"Ignoring unknown file {unknown}",
        "Ignoring unknown file leader-epoch",
        f"Non-consecutive offsets in {log}",
        "  5 is followed by 9",
    ]


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        ([], None),
        (["--deep-iteration"], ""),
        (["--print-data-log"], " key: k payload: v"),
        (["--key-decoder-class"], " key: k payload: v"),
        (["--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder"], " key: k payload: v"),
        (["--offsets-decoder"], " key: Error at offset 5, skipping. Could not read version from key's buffer."),
    ],
)
def test_a_decoder_prints_the_records(capsys: Captured, log: Path, options: list[str], contents: str | None) -> None:
    status, out, _ = run(capsys, "--files", str(log), *options)
    assert status == 0
    records = [line for line in out if line.startswith("| ")]
    assert len(records) == (0 if contents is None else 2)
    assert not records or records[0].endswith(f"headerKeys: []{contents}")


def test_a_deprecated_decoder_says_so(capsys: Captured, log: Path) -> None:
    _, out, _ = run(capsys, "--files", str(log), "--key-decoder-class", "kafka.serializer.StringDecoder")
    assert out[1] == (
        "kafka.serializer.StringDecoder is deprecated. Please use org.apache.kafka.tools.api.StringDecoder instead"
    )


def test_file_that_cannot_be_read_is_one_line_and_status_1(capsys: Captured, log: Path) -> None:
    status, out, err = run(capsys, "--files", f"{log},{log.parent}/missing.index")
    assert status == 1
    assert out[-1] == f"Dumping {log.parent}/missing.index"
    assert err == ['odradek: For input string: "missing"']
    assert run(capsys, "--files", str(log), "--transaction-log-decoder")[0] == 1


@pytest.mark.parametrize("option", ["--cluster-metadata-decoder", "--remote-log-metadata-decoder"])
def test_decoders_of_kraft_and_tiered_storage_are_refused(capsys: Captured, log: Path, option: str) -> None:
    status, out, err = run(capsys, "--files", str(log), option)
    assert (status, out) == (1, [])
    assert err[0].startswith(f"odradek: {option}: ")


@pytest.mark.parametrize("arguments", [[], ["--files", "x", "--value-decoder-class", "com.example.Mine"]])
def test_usage(capsys: Captured, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        dump_log.main(arguments)
    assert exit_.value.code == 2
    assert "usage: odradek dump-log" in capsys.readouterr().err


def test_it_is_a_command(capsys: Captured, log: Path) -> None:
    assert cli.main(["dump-log", "--files", str(log), "--max-bytes", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"Dumping {log}", "Log starting offset: 5"]


def as_json(capsys: Captured, *arguments: str) -> list[dict[str, object]]:
    assert dump_log.main([*arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    rows: list[dict[str, object]] = json.loads(printed.out)
    return rows


def test_json_has_an_object_for_each_line_and_finding(capsys: Captured, log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"end")
    rows = as_json(capsys, "--files", str(log), "--print-data-log")
    assert [row["kind"] for row in rows] == [
        "batch",
        "record",
        "batch",
        "record",
        "invalidBytes",
        "nonConsecutiveOffsets",
    ]
    assert {row["file"] for row in rows} == {str(log)}
    batch_row, record_row = rows[:2]
    assert batch_row["baseOffset"] == 5
    assert batch_row["deleteHorizonMs"] is None
    assert (batch_row["timestampType"], batch_row["isvalid"], batch_row["compresscodec"]) == (
        "CreateTime",
        True,
        "none",
    )
    assert (record_row["offset"], record_row["key"], record_row["payload"]) == (5, "k", "v")
    assert record_row["headerKeys"] == []
    assert rows[4:] == [
        {"file": str(log), "kind": "invalidBytes", "position": 140, "size": 3},
        {"file": str(log), "kind": "nonConsecutiveOffsets", "offset": 5, "nextOffset": 9},
    ]


def test_json_has_the_facts_of_the_lines(capsys: Captured, tmp_path: Path) -> None:
    """Names and numbers of a batch are those of its line."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(
        bytes(batch(b"v"))
        + bytes(marker(ControlRecordType.COMMIT, producer_id=1, base_offset=1))
        + bytes(build_messages([Record(2, 1, b"k", b"v")], 1, base_offset=2))
    )
    _, lines, _ = run(capsys, "--files", str(log), "--deep-iteration")
    rows = as_json(capsys, "--files", str(log), "--deep-iteration")
    assert len(rows) == len(lines) - 2
    for line, row in zip(lines[2:], rows, strict=True):
        for name, value in re.findall(r"(\w+): (\S+?)}?(?= |$)", line):
            if name in ("CreateTime", "LogAppendTime"):
                assert (row["timestampType"], str(row["timestamp"])) == (name, value)
            elif name == "deleteHorizonMs":
                assert (row[name], value) == (None, "OptionalLong.empty")
            elif name == "headerKeys":
                assert (row[name], value) == ([], "[]")
            else:
                assert str(row[name]) in (value, value.capitalize()), name
    assert rows[3]["endTxnMarker"] == "COMMIT"


def test_json_of_bytes_that_are_no_text(capsys: Captured, tmp_path: Path) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(bytes(batch(b"\xff")))
    (_, record) = as_json(capsys, "--files", str(log), "--print-data-log", "--skip-record-metadata")
    assert record == {"file": str(log), "kind": "record", "offset": 0, "key": "k", "payload": {"base64": "/w=="}}


def test_json_of_what_ends_with_an_error_is_still_an_array(capsys: Captured, log: Path) -> None:
    assert dump_log.main(["--files", f"{log},{log.with_name('0.index')}", "--json"]) == 1
    printed = capsys.readouterr()
    assert [row["kind"] for row in json.loads(printed.out)] == ["batch", "batch"]
    assert printed.err.startswith("odradek: ")


def test_json_of_nothing(capsys: Captured, tmp_path: Path) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(b"")
    assert as_json(capsys, "--files", str(log)) == []


def test_a_dump_of_a_log_loads_nothing_for_other_files() -> None:
    """Snapshots and the coordinators' topics took two fifths of its start."""
    program = "import sys, odradek.broker.tools.dump_log.dump_log; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "odradek.storage.segment.file_records" in names
    assert not {"dataclasses", "logging", "odradek.protocol.codec.codec", "odradek.storage.append_info"} & {*names}
