"""A consumed record as a line for people, with colours if they are wanted."""

from __future__ import annotations

from datetime import UTC, datetime

from odradek.broker.tools.command.terminal_text import visible
from odradek.broker.tools.data.records.record_format import AS_IT_IS, ConsumedRecord, FieldTexts, RecordFormat
from odradek.protocol.records.record import HEADER_KEY_ERRORS

_DIM, _CYAN, _YELLOW, _MAGENTA, _RED, _OFF = "2", "36", "33", "35", "31", "0"


def pretty_line(*, with_colours: bool, texts: FieldTexts = AS_IT_IS) -> RecordFormat:
    """A line for people: local time, place, key, headers, value. Bytes that would move the cursor are escaped."""

    def paint(colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[{_OFF}m" if with_colours else text

    def shown(field: bytes | None) -> str:
        if field is None:
            return paint(_RED, "null")
        text = field.decode("utf-8", "backslashreplace")
        return visible(text)

    def form(found: ConsumedRecord) -> bytes:
        record = found.record
        moment = "-" if record.timestamp < 0 else _local_time(record.timestamp)
        place = f"{found.topic}[{found.partition}]@{record.offset}"
        parts = [paint(_DIM, moment), paint(_CYAN, place)]
        if record.key is not None:
            parts.append(paint(_YELLOW, shown(record.key and texts.key(record.key))))
        parts += [
            f"{paint(_MAGENTA, shown(name.encode('utf-8', HEADER_KEY_ERRORS)))}={shown(value)}"
            for name, value in record.headers
        ]
        parts.append(shown(record.value and texts.value(record.value)))
        return " ".join(parts).encode("utf-8", "backslashreplace") + b"\n"

    return form


def _local_time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
