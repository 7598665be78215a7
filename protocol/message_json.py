"""Messages as the JSON that Kafka's tools print: names in camel case, bytes in base64, fields of the version only.

Fields come in the order of the definition. A field that travels as a tag is left out while it has its default, every
other field of the version is there. The text is that of Jackson without indentation: nothing outside of ASCII is
escaped, control characters are written as `\\u001F`.

Kafka: JsonConverterGenerator, and the writer of Jackson.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from typing import Final, TypeAlias

from odradek.protocol.codec.field import FRESH, Field, Kind, Primitive
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.codec.schema import Struct

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

_IRREGULAR: Final = {
    "is_kraft_controller": "isKRaftController",
    "kraft_version": "kRaftVersion",
    "kraft_version_feature": "kRaftVersionFeature",
}
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def to_json(value: Struct, version: int) -> dict[str, Json]:
    """The message or struct as objects of JSON: what `...JsonConverter.write` makes of it in this version."""
    return {
        camel_case(field.name): _field_to_json(field.kind, field.element, getattr(value, field.name), version)
        for field in value.FIELDS
        if field.versions.covers(version) and not (field.tagged.covers(version) and _has_default(field, value))
    }


def json_text(value: Json) -> str:
    """The shortest text of it, as Jackson writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_ESCAPED.sub(_escape, value)}"'
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            return f"{{{','.join(f'{json_text(name)}:{json_text(item)}' for name, item in value.items())}}}"
    return str(value)


def camel_case(name: str) -> str:
    """The name in Kafka's definitions, its first letter small: `timeout_ms` is `timeoutMs`."""
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _has_default(field: Field, value: Struct) -> bool:
    actual: object = getattr(value, field.name)
    if field.default is not FRESH:
        return bool(actual == field.default)
    return actual == (type(actual)() if isinstance(actual, Struct) else [])


def _field_to_json(kind: Kind, element: object, value: object, version: int) -> Json:
    if value is None:
        return None
    if isinstance(value, Struct):
        return to_json(value, version)
    if isinstance(value, list):
        inner = element.kind if isinstance(element, Primitive) else Kind.STRUCT
        return [_field_to_json(inner, None, item, version) for item in value]
    if isinstance(value, bytes | memoryview):
        return uuid_to_text(bytes(value)) if kind is Kind.UUID else b2a_base64(value, newline=False).decode()
    assert isinstance(value, bool | int | float | str)
    return value


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"
