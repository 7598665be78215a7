from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.tools.data.records.record_reader import (
    InputRecord,
    LineFormat,
    MalformedRecord,
    RecordReader,
)


def test_a_line_is_a_value() -> None:
    assert LineFormat().record(b"a\tb:c,d", 1) == InputRecord(None, b"a\tb:c,d")


def test_key_and_headers() -> None:
    form = LineFormat(parse_key=True, parse_headers=True)
    assert form.record(b"h1:v1,h2:\tk\tv\tw", 1) == InputRecord(b"k", b"v\tw", (("h1", b"v1"), ("h2", b"")))
    assert form.record(b"h1:v1,,\tk\t", 1).headers == (("h1", b"v1"),), "Java's split drops empty pieces at the end"


def test_null_marker_and_empty_fields() -> None:
    form = LineFormat(parse_key=True, parse_headers=True, null_marker=b"NULL")
    assert form.record(b"h:NULL\tNULL\tNULL", 1) == InputRecord(None, None, (("h", None),))
    assert form.record(b"NULL\tk\tv", 1) == InputRecord(b"k", b"v")
    assert LineFormat(parse_key=True, empty_is_null=True).record(b"k\t", 1) == InputRecord(b"k", None)


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        (LineFormat(parse_key=True), b"abc", "No key separator found on line number 7: 'abc'"),
        (LineFormat(parse_headers=True), b"a:b", "No headers delimiter found on line number 7: 'a:b'"),
        (LineFormat(parse_headers=True), b"x\tv", "No header key separator found in pair 'x' on line number 7"),
        (
            LineFormat(parse_headers=True, null_marker=b"N"),
            b"N:1\tv",
            "Header keys should not be equal to the null marker 'N' as they can't be null",
        ),
    ],
)
def test_what_apaches_reader_refuses(form: LineFormat, line: bytes, message: str) -> None:
    with pytest.raises(MalformedRecord, match=message.replace("(", r"\(")):
        form.record(line, 7)


@pytest.mark.parametrize("name", ["key_separator", "headers_delimiter", "headers_separator", "headers_key_separator"])
def test_a_separator_is_not_empty(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name.replace('_', '.')} is empty"):
        LineFormat(**{name: b""}).check()  # type: ignore[arg-type]


def test_ignore_error() -> None:
    form = LineFormat(parse_key=True, parse_headers=True, ignore_error=True)
    assert form.record(b"abc", 1) == InputRecord(None, b"abc")
    assert form.record(b"x\tk\tv", 1) == InputRecord(b"k", b"v", (("x", None),))


def test_separators_differ() -> None:
    with pytest.raises(ValueError, match=r"headers.delimiter and headers.separator may not be equal"):
        LineFormat(headers_separator=b"\t").check()
    with pytest.raises(ValueError, match=r"null.marker and key.separator may not be equal"):
        LineFormat(null_marker=b"\t").check()


def parsed(reader: RecordReader, *pieces: bytes) -> list[bytes | None]:
    return [record.value for piece in pieces for record in reader.feed(piece)] + [
        record.value for record in reader.finish()
    ]


@given(
    st.lists(st.binary(max_size=6).filter(lambda line: b"ab" not in line and not line.endswith(b"a")), max_size=8),
    st.integers(1, 5),
)
def test_records_are_the_same_for_pieces_of_any_size(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"ab" for line in lines)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert parsed(RecordReader(LineFormat().record, b"ab"), *pieces) == lines


def test_the_last_line_needs_no_delimiter() -> None:
    assert parsed(RecordReader(LineFormat().record), b"a\n\nb") == [b"a", b"", b"b"]
    assert parsed(RecordReader(LineFormat().record), b"a\n") == [b"a"]


def test_a_line_without_end_is_bounded() -> None:
    reader = RecordReader(LineFormat().record, max_record_bytes=10)
    assert list(reader.feed(b"x\n" + b"0123456789")) == [InputRecord(None, b"x")]
    with pytest.raises(MalformedRecord, match="Line number 2 has more than 10 bytes before a delimiter"):
        list(reader.feed(b"0"))


def test_an_error_names_its_line() -> None:
    with pytest.raises(MalformedRecord, match="line number 3"):
        list(RecordReader(LineFormat(parse_key=True).record).feed(b"a\tb\nc\td\ne\n"))
