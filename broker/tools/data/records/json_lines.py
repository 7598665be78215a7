"""Records as JSON lines: `consume --json` prints them with the names of kcat's -J, `produce --json` reads them.

A key, value or header value that is no UTF-8 text is `{"base64": "..."}`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator

from odradek.broker.tools.data.records.record_format import ConsumedRecord
from odradek.broker.tools.data.records.record_reader import InputRecord, MalformedRecord, shown
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME, MAX_INT64
from odradek.protocol.records.record import HEADER_KEY_ERRORS


def json_line(found: ConsumedRecord) -> bytes:
    """One JSON object in a line, with the names of kcat's -J. `produce --json` reads it.

    A key, value or header value that is no UTF-8 text is `{"base64": "..."}`.
    """
    record = found.record
    names = {CREATE_TIME: "create", LOG_APPEND_TIME: "logappend"}
    fields: dict[str, object] = {
        "topic": found.topic,
        "partition": found.partition,
        "offset": record.offset,
        "tstype": names.get(found.timestamp_type, "unknown"),
        "ts": record.timestamp,
        "broker": found.broker_id,
    }
    if record.headers:
        fields["headers"] = [part for name, value in record.headers for part in (name, _json_field(value))]
    fields["key"] = _json_field(record.key)
    fields["payload"] = _json_field(record.value)
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _json_field(field: bytes | None) -> object:
    if field is None:
        return None
    try:
        return field.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(field).decode()}


def json_record(line: bytes, number: int) -> InputRecord:
    """The record of a line that `consume --json` has printed. Raises: MalformedRecord.

    An object with `payload` (or `value`), `key`, `headers` (a list of name, value, name, value, or an object), `ts`,
    `partition` and `topic`, all optional. A field that is no UTF-8 text is `{"base64": "..."}`.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedRecord(f"No JSON on line number {number}: {error}") from None
    if not isinstance(found, dict):
        raise MalformedRecord(f"No JSON object on line number {number}: '{shown(line)}'")
    try:
        return InputRecord(
            key=_json_bytes(found.get("key")),
            value=_json_bytes(found.get("payload", found.get("value"))),
            headers=tuple(_json_headers(found.get("headers"))),
            timestamp=_json_integer(found, "ts"),
            partition=_json_integer(found, "partition"),
            topic=_json_topic(found),
        )
    except ValueError as error:
        raise MalformedRecord(f"No record on line number {number}: {error}") from None


def _json_bytes(found: object) -> bytes | None:
    if found is None:
        return None
    if isinstance(found, str):
        return found.encode("utf-8", HEADER_KEY_ERRORS)
    if isinstance(found, dict) and found.keys() == {"base64"} and isinstance(found["base64"], str):
        return b64decode(found["base64"], validate=True)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def _json_headers(found: object) -> Iterator[tuple[str, bytes | None]]:
    if found is None:
        return
    if isinstance(found, dict):
        found = [part for pair in found.items() for part in pair]
    if not isinstance(found, list) or len(found) % 2 or not all(isinstance(name, str) for name in found[::2]):
        raise ValueError("headers are a list of name, value, name, value")
    for name, value in zip(found[::2], found[1::2], strict=True):
        yield name, _json_bytes(value)


def _json_integer(found: dict[str, object], name: str) -> int | None:
    value = found.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT64):
        return value
    raise ValueError(f"{name} is {value!r} and not a number between 0 and {MAX_INT64}")


def _json_topic(found: dict[str, object]) -> str | None:
    topic = found.get("topic")
    if topic is None or isinstance(topic, str):
        return topic
    raise ValueError(f"topic is {topic!r} and not a text")
