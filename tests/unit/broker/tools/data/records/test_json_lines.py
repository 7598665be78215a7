from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.tools.data.records.json_lines import json_line, json_record
from odradek.broker.tools.data.records.record_format import ConsumedRecord
from odradek.broker.tools.data.records.record_reader import InputRecord, MalformedRecord
from odradek.protocol.records.record import Record
from tests.unit.broker.tools.data.records.test_record_format import record

FIELDS = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)


def test_json() -> None:
    assert json.loads(json_line(record(b"\xff", "ä".encode()))) == {
        "topic": "topic",
        "partition": 2,
        "offset": 7,
        "tstype": "create",
        "ts": 1234,
        "broker": -1,
        "headers": ["h", "1", "n", None],
        "key": {"base64": "/w=="},
        "payload": "ä",
    }
    assert "headers" not in json.loads(json_line(record(headers=())))


def test_json_that_is_too_deep_and_numbers_that_are_too_large() -> None:
    with pytest.raises(MalformedRecord, match="No JSON on line number 1"):
        json_record(b"[" * 100_000, 1)
    assert json_record(b'{"ts":%d}' % (2**63 - 1), 1).timestamp == 2**63 - 1
    with pytest.raises(MalformedRecord, match="ts is 9223372036854775808 and not a number between"):
        json_record(b'{"ts":9223372036854775808}', 1)


@given(FIELDS, FIELDS, st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=3), st.integers(0, 2**62))
def test_json_round_trip(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int
) -> None:
    line = json_line(ConsumedRecord("t", 3, Record(5, timestamp, key, value, tuple(headers)), 0))
    assert line.count(b"\n") == 1
    assert json_record(line, 1) == InputRecord(key, value, tuple(headers), timestamp, 3, "t")


def test_json_that_people_write() -> None:
    line = json.dumps({"key": 1, "value": {"a": [1]}, "headers": {"h": "x"}}).encode()
    assert json_record(line, 1) == InputRecord(b"1", b'{"a":[1]}', (("h", b"x"),))


@pytest.mark.parametrize(
    "line", [b"x", b"[1]", b'{"headers": ["a"]}', b'{"ts": -1}', b'{"partition": true}', b'{"key": {"base64": "!"}}']
)
def test_json_that_is_no_record(line: bytes) -> None:
    with pytest.raises(MalformedRecord, match="on line number 4"):
        json_record(line, 4)
