"""What kcat 1.7.1 printed of packed fields (`-s`) and as JSON (`-J`): `odradek consume` prints the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.broker.tools.data.records.deserializers import SerializationError
from odradek.broker.tools.data.records.json_lines import json_line
from odradek.broker.tools.data.records.packed_format import packed_format
from odradek.broker.tools.data.records.record_format import ConsumedRecord, FieldTexts, format_string
from odradek.protocol.records.layout import CREATE_TIME
from odradek.protocol.records.record import Record

LINES = (Path(__file__).parent / "records" / "kcat-1.7.1.txt").read_text().splitlines()
PACKED = [line.split("\t") for line in LINES if not line.startswith(("#", "J"))]
JSON = [bytes.fromhex(line[2:]) for line in LINES if line.startswith("J")]
HEADERS = (("h", b"v"), ("n", None), ("e", b""))


def record(field: bytes | None, offset: int = 0) -> ConsumedRecord:
    return ConsumedRecord("gold3", 0, Record(offset, 1_700_000_000_000, field, field, HEADERS), CREATE_TIME, 0)


@pytest.mark.parametrize("form", sorted({row[0] for row in PACKED}))
def test_packed_fields(form: str) -> None:
    rows = [row[1:] for row in PACKED if row[0] == form]
    printed = format_string("%k", texts=FieldTexts(key=packed_format("key", form)))
    for field, kind, result in rows:
        found = record({"null": None, "empty": b""}[field] if field in ("null", "empty") else bytes.fromhex(field))
        if kind == "printed":
            assert printed(found).hex() == result, field
        else:
            with pytest.raises(SerializationError) as error:
                printed(found)
            assert str(error.value) == result


def test_json() -> None:
    """The same objects. Of bytes that are no UTF-8 text kcat makes lines that are no JSON."""
    compared = 0
    for offset, line in enumerate(JSON):
        try:
            expected = json.loads(line)
        except UnicodeDecodeError:
            continue
        key = expected["key"]
        found = json_line(record(None if key is None else key.encode(), offset))
        assert json.loads(found) == expected
        assert list(json.loads(found)) == list(expected)
        compared += 1
    assert compared == 7


def test_headers() -> None:
    assert format_string("%h")(record(b"")) == b"h=v,n=NULL,e="
