"""Bytes of an input to records: delimited lines, or lines with a key and headers. JSON is in `json_lines.py`.

Everything is bytes: what is not UTF-8 arrives as it was. A record ends at the delimiter only; Apache's console producer
also ends one at a carriage return.

Kafka: ConsoleProducer.LineMessageReader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from odradek.protocol.records.record import HEADER_KEY_ERRORS, Headers

MAX_RECORD_BYTES: Final = 104_857_600
"""The default of `socket.request.max.bytes`: no broker with its defaults takes a larger one."""


class MalformedRecord(ValueError):
    """A piece of the input is no record. The message says which and why."""


class InputRecord(NamedTuple):
    """A record that is to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds; None: the time of sending."""
    partition: int | None = None
    """None: the partitioner chooses."""
    topic: str | None = None
    """None: the topic of the command."""


class LineFormat(NamedTuple):
    """How a line is divided: `[headers DELIMITER] [key SEPARATOR] value`. The names are those of Apache's reader."""

    parse_key: bool = False
    key_separator: bytes = b"\t"
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    ignore_error: bool = False
    """A line without a separator is a value, and no error."""
    empty_is_null: bool = False

    def check(self) -> None:
        """Raises: ValueError where Apache's reader refuses the properties."""
        for name, separator in (
            ("key.separator", self.key_separator),
            ("headers.separator", self.headers_separator),
            ("headers.delimiter", self.headers_delimiter),
            ("headers.key.separator", self.headers_key_separator),
        ):
            if not separator:
                raise ValueError(f"{name} is empty")
            _must_differ("null.marker", self.null_marker, name, separator)
        _must_differ("headers.delimiter", self.headers_delimiter, "headers.separator", self.headers_separator)
        _must_differ("headers.delimiter", self.headers_delimiter, "headers.key.separator", self.headers_key_separator)
        _must_differ("headers.separator", self.headers_separator, "headers.key.separator", self.headers_key_separator)

    def record(self, line: bytes, number: int) -> InputRecord:
        """The record of a line; `number` counts from 1. Raises: MalformedRecord."""
        headers: bytes | None = None
        key: bytes | None = None
        if self.parse_headers:
            headers, line = self._split(line, self.headers_delimiter, "headers delimiter", number)
        if self.parse_key:
            key, line = self._split(line, self.key_separator, "key separator", number)
        pairs: Headers = ()
        if headers is not None and headers != self.null_marker:
            pairs = tuple(self._headers(headers, number))
        return InputRecord(None if key is None else self._nullable(key), self._nullable(line), pairs)

    def _split(self, line: bytes, separator: bytes, name: str, number: int) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self.ignore_error:
            return None, line
        raise MalformedRecord(f"No {name} found on line number {number}: '{shown(line)}'")

    def _headers(self, headers: bytes, number: int) -> Iterator[tuple[str, bytes | None]]:
        pairs = headers.split(self.headers_separator)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()  # as Java's Pattern.split
        for pair in pairs:
            name, found, value = pair.partition(self.headers_key_separator)
            if not found:
                if not self.ignore_error:
                    raise MalformedRecord(
                        f"No header key separator found in pair '{shown(pair)}' on line number {number}"
                    )
                yield _text(pair), None
            elif name == self.null_marker:
                raise MalformedRecord(
                    f"Header keys should not be equal to the null marker '{shown(name)}' as they can't be null"
                )
            else:
                yield _text(name), self._nullable(value)

    def _nullable(self, field: bytes) -> bytes | None:
        if field == self.null_marker or (self.empty_is_null and not field):
            return None
        return field


class RecordReader:
    """Bytes in pieces of any size to records. `parse` makes a record of the bytes between two delimiters."""

    def __init__(
        self,
        parse: Callable[[bytes, int], InputRecord],
        delimiter: bytes = b"\n",
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._parse = parse
        self._delimiter = delimiter
        self._max_record_bytes = max_record_bytes
        self._buffer = bytearray()
        """What follows the last delimiter."""
        self._number = 0

    def feed(self, data: bytes) -> Iterator[InputRecord]:
        """The records that are complete now. Raises: MalformedRecord."""
        buffer, delimiter = self._buffer, self._delimiter
        searched = max(0, len(buffer) - len(delimiter) + 1)
        buffer += data
        start = 0
        while (end := buffer.find(delimiter, searched)) >= 0:
            record = self._record(bytes(buffer[start:end]))
            start = searched = end + len(delimiter)
            yield record
        del buffer[:start]
        if len(buffer) > self._max_record_bytes:
            raise MalformedRecord(
                f"Line number {self._number + 1} has more than {self._max_record_bytes} bytes before a delimiter"
            )

    def finish(self) -> Iterator[InputRecord]:
        """The record after the last delimiter, if there is one. Raises: MalformedRecord."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if rest:
            yield self._record(rest)

    def _record(self, piece: bytes) -> InputRecord:
        self._number += 1
        return self._parse(piece, self._number)


def _must_differ(name: str, value: bytes | None, other: str, value_of_other: bytes) -> None:
    if value == value_of_other:
        raise ValueError(f"{name} and {other} may not be equal")


def _text(name: bytes) -> str:
    return name.decode("utf-8", HEADER_KEY_ERRORS)


def shown(piece: bytes) -> str:
    return piece.decode("utf-8", "backslashreplace")
