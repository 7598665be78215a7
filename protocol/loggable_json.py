"""Requests and responses as JSON for a log: no secrets, no records, and bounded in size.

Names and values are those of `message_json`. Of records there is only the size, in bytes, as in Apache Kafka. Values
that may be secret are `[hidden]`. Long strings and bytes are cut off; when the budget of characters is used up, each
list ends with the number of elements that are left out.

Kafka: RequestConvertToJson, RequestChannel.Request.loggableRequest.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.protocol.codec.field import Kind, Primitive
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.codec.schema import Struct
from odradek.protocol.message_json import camel_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.codec.field import Field
    from odradek.protocol.message_json import Json

HIDDEN: Final = "[hidden]"

CHARACTERS_MAX: Final = 8_000
"""About so many characters of one message."""

TEXT_CHARACTERS_MAX: Final = 1_000
"""Of one string."""

SECRETS: Final = frozenset(
    {"auth_bytes", "hmac", "salt", "salted_password", "request_data", "response_data", "request_principal"}
)
"""Fields of any message that hold passwords, tokens, or whole requests of others."""

CONFIG_STRUCTS: Final = frozenset({"AlterableConfig", "CreatableTopicConfig", "CreateableTopicConfig"})
"""Structs of a request with `name` and `value` of a config, which may be a password."""


def loggable(message: Struct, version: int, is_secret: Callable[[str], bool]) -> dict[str, Json]:
    """The message of this version. `is_secret` gets the name of a config."""
    return _Writer(version, is_secret).struct(message)


class _Writer:
    __slots__ = ("_is_secret", "_left", "_version")

    def __init__(self, version: int, is_secret: Callable[[str], bool]) -> None:
        self._version = version
        self._is_secret = is_secret
        self._left = CHARACTERS_MAX

    def struct(self, value: Struct) -> dict[str, Json]:
        version = self._version
        shown: dict[str, Json] = {}
        for field in value.FIELDS:
            if not field.versions.covers(version):
                continue
            held: object = getattr(value, field.name)
            if field.tagged.covers(version) and (held == field.default or held == []):
                continue
            name = camel_case(field.name)
            self._left -= len(name) + 4
            if field.name in SECRETS:
                shown[name] = HIDDEN
            elif field.kind is Kind.RECORDS and held is not None:
                shown[f"{name}SizeInBytes"] = size_of(held)
            else:
                shown[name] = self._value(field.kind, field, held)
        if type(value).__name__ in CONFIG_STRUCTS and self._is_secret(str(getattr(value, "name", ""))):
            shown["value"] = HIDDEN
        return shown

    def _value(self, kind: Kind, field: Field | None, value: object) -> Json:
        if value is None or isinstance(value, bool | int | float):
            self._left -= 6
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Struct):
            return self.struct(value)
        if isinstance(value, bytes | bytearray | memoryview):
            if kind is Kind.UUID:
                return self._text(uuid_to_text(bytes(value)))
            return self._text(b2a_base64(value[:TEXT_CHARACTERS_MAX], newline=False).decode())
        if isinstance(value, Sequence):  # a list, or elements that are made when they are read
            element = None if field is None else field.element
            return self._list(element.kind if isinstance(element, Primitive) else Kind.STRUCT, value)
        return self._text(type(value).__name__)

    def _list(self, kind: Kind, values: Sequence[object]) -> list[Json]:
        shown: list[Json] = []
        for value in values:
            if self._left <= 0:
                shown.append(f"{len(values) - len(shown)} more")
                break
            shown.append(self._value(kind, None, value))
        return shown

    def _text(self, text: str) -> str:
        if len(text) > TEXT_CHARACTERS_MAX:
            text = f"{text[:TEXT_CHARACTERS_MAX]}..."
        self._left -= len(text) + 2
        return text


def size_of(records: object) -> int:
    """Bytes of records in memory, or of a region of a file."""
    if isinstance(records, bytes | bytearray | memoryview):
        return len(records)
    size = getattr(records, "size_in_bytes", 0)
    return size if isinstance(size, int) else 0
