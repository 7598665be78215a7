r"""A consumed record as bytes for the output.

The fields that Apache's console consumer prints, and kcat's format strings. Keys, values and header values are written
as they are. JSON lines are in `json_lines.py`, lines for people in `pretty_line.py`.

Tokens of a format string: %s value, %S its length (-1: null), %R its length in four bytes, %k key, %K its length,
%T timestamp (ms), %h headers, %t topic, %p partition, %o offset, %% a percent sign; \n, \r, \t, \\ and \xNN.

Kafka: DefaultMessageFormatter, NoOpMessageFormatter, LoggingMessageFormatter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final, NamedTuple

from odradek.broker.tools.data.records.escapes import format_parts
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME
from odradek.protocol.records.record import HEADER_KEY_ERRORS, Record

_INT: Final = Struct(">i")


class ConsumedRecord(NamedTuple):
    """A record with the place it comes from."""

    topic: str
    partition: int
    record: Record
    timestamp_type: int
    """CREATE_TIME, LOG_APPEND_TIME or NO_TIMESTAMP_TYPE."""
    broker_id: int = -1
    """The broker that has sent the record."""


RecordFormat = Callable[[ConsumedRecord], bytes]


def _length(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def _headers_text(found: ConsumedRecord, null: bytes) -> bytes:
    """`name=value,name=value`, and NULL for each value that is null, as kcat prints headers."""
    return b",".join(
        b"%b=%b" % (name.encode("utf-8", HEADER_KEY_ERRORS), b"NULL" if value is None else value)
        for name, value in found.record.headers
    )


_FOREIGN: Final = frozenset("skh")
"""Tokens of texts that producers have chosen."""

_FIELDS: Final[Mapping[str, Callable[[ConsumedRecord, bytes], bytes]]] = {
    "s": lambda found, null: null if found.record.value is None else found.record.value,
    "S": lambda found, null: b"%d" % _length(found.record.value),
    "R": lambda found, null: _INT.pack(_length(found.record.value)),
    "k": lambda found, null: null if found.record.key is None else found.record.key,
    "K": lambda found, null: b"%d" % _length(found.record.key),
    "T": lambda found, null: b"%d" % found.record.timestamp,
    "h": _headers_text,
    "t": lambda found, null: found.topic.encode(),
    "p": lambda found, null: b"%d" % found.partition,
    "o": lambda found, null: b"%d" % found.record.offset,
}


class FieldTexts(NamedTuple):
    """From the bytes of a key or value to what is printed. Null and empty ones are not asked for. May raise
    SerializationError."""

    key: Callable[[bytes], bytes] = bytes
    value: Callable[[bytes], bytes] = bytes


AS_IT_IS: Final = FieldTexts()


def format_string(
    text: str, null: bytes = b"", shown: Callable[[bytes], bytes] = bytes, texts: FieldTexts = AS_IT_IS
) -> RecordFormat:
    """A format as kcat's -f. `null` stands for a key or value that is null. Raises: ValueError for an unknown token.

    `shown` gets keys, values and headers, as in the other formats: `visible_bytes` on a terminal.
    """
    parts = format_parts(text, _FIELDS)
    fields = {token: _FIELDS[token] for token, _ in parts if token}
    fields |= {
        "k": lambda found, null: texts.key(found.record.key) if found.record.key else _FIELDS["k"](found, null),
        "s": lambda found, null: texts.value(found.record.value) if found.record.value else _FIELDS["s"](found, null),
    }

    def form(found: ConsumedRecord) -> bytes:
        pieces = []
        for token, literal in parts:
            piece = fields[token](found, null) if token else literal
            pieces.append(shown(piece) if token in _FOREIGN else piece)
        return b"".join(pieces)

    return form


class PrintedFields(NamedTuple):
    """What Apache's default formatter prints; its properties have these names with dots."""

    print_timestamp: bool = False
    print_partition: bool = False
    print_offset: bool = False
    print_headers: bool = False
    print_key: bool = False
    print_value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    key_text: Callable[[bytes], bytes] = bytes
    """From bytes to what is printed: a deserializer."""
    value_text: Callable[[bytes], bytes] = bytes
    headers_text: Callable[[bytes], bytes] = bytes
    shown: Callable[[bytes], bytes] = bytes
    """From what is printed to what is safe where it is printed."""

    def line(self, found: ConsumedRecord) -> bytes:
        """Implements `RecordFormat`."""
        record = found.record
        fields: list[bytes] = []
        if self.print_timestamp:
            name = _TIMESTAMP_TYPES.get(found.timestamp_type)
            fields.append(b"NO_TIMESTAMP" if name is None else b"%b:%d" % (name, record.timestamp))
        if self.print_partition:
            fields.append(b"Partition:%d" % found.partition)
        if self.print_offset:
            fields.append(b"Offset:%d" % record.offset)
        if self.print_headers:
            fields.append(self.shown(self._headers(record)))
        if self.print_key:
            fields.append(self.shown(self.key_text(self.null_literal if record.key is None else record.key)))
        if self.print_value:
            fields.append(self.shown(self.value_text(self.null_literal if record.value is None else record.value)))
        return self.key_separator.join(fields) + self.line_separator if fields else b""

    def _headers(self, record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            b"%b:%b"
            % (
                name.encode("utf-8", HEADER_KEY_ERRORS),
                self.headers_text(self.null_literal if value is None else value),
            )
            for name, value in record.headers
        )


_TIMESTAMP_TYPES: Final = {CREATE_TIME: b"CreateTime", LOG_APPEND_TIME: b"LogAppendTime"}


def values_only(
    delimiter: bytes = b"\n",
    null: bytes = b"",
    key_delimiter: bytes | None = None,
    shown: Callable[[bytes], bytes] = bytes,
    texts: FieldTexts = AS_IT_IS,
) -> RecordFormat:
    """Each value and a delimiter; with `key_delimiter` the key and it before the value. As kcat's -D and -K."""

    def field(data: bytes | None, text: Callable[[bytes], bytes]) -> bytes:
        return shown(null if data is None else text(data) if data else data)

    def form(found: ConsumedRecord) -> bytes:
        value = field(found.record.value, texts.value)
        if key_delimiter is None:
            return value + delimiter
        return field(found.record.key, texts.key) + key_delimiter + value + delimiter

    return form


def nothing(found: ConsumedRecord) -> bytes:
    """Prints nothing. Kafka: NoOpMessageFormatter."""
    return b""
