"""JSON in znodes: compact encoding, and decoding that checks every value.

Anyone with a ZooKeeper shell can write a node, so a value of the wrong type is an expected error: `BadZnode`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias, TypeGuard, cast

from odradek.protocol.topic_partition import TopicPartition

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = " \t\r\n"
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


class BadZnode(Exception):
    """The data of a node is not valid; the message says why."""


def encode(node: dict[str, Json]) -> bytes:
    text = json.dumps(node, separators=(",", ":"), ensure_ascii=False)
    if "\\u" in text:  # perhaps a control character, whose digits Jackson writes in capitals
        from odradek.protocol.message_json import json_text

        text = json_text(node)
    return text.encode()


def parse(data: bytes | None) -> Json:
    """The JSON value at the beginning, or None if there is none. What follows it is ignored, as Jackson does."""
    if not data:
        return None
    try:
        text = data.decode(json.detect_encoding(data), "surrogatepass")
        return cast("Json", _DECODER.raw_decode(text, len(text) - len(text.lstrip(_BLANKS)))[0])
    except (ValueError, RecursionError):  # RecursionError: thousands of nested brackets
        return None


def json_object(data: bytes | None, path: str) -> dict[str, Json]:
    node = parse(data)
    if not isinstance(node, dict):
        raise BadZnode(f"{path} does not hold a JSON object: {data!r}")
    return node


def int_in(node: Mapping[str, Json], key: str, default: int | None = None) -> int:
    """A number of 32 bits: requests have no room for a larger one."""
    value = node.get(key, default)
    if not _is_int_of(value, _INT32):
        raise BadZnode(f"{key} is {value!r}, not a number")
    return value


def long_in(node: Mapping[str, Json], key: str) -> int:
    """A number of 64 bits."""
    value = node.get(key)
    if not _is_int_of(value, _INT64):
        raise BadZnode(f"{key} is {value!r}, not a number")
    return value


def _is_int_of(value: Json, numbers: range) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in numbers


def str_in(node: Mapping[str, Json], key: str) -> str:
    value = node.get(key)
    if not is_text(value):
        raise BadZnode(f"{key} is {value!r}, not a string")
    return value


def is_text(value: Json) -> TypeGuard[str]:
    """Whether a value is a string that can be written: JSON can name half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def list_in(node: Mapping[str, Json], key: str) -> list[Json]:
    value = node.get(key)
    if not isinstance(value, list):
        raise BadZnode(f"{key} is {value!r}, not a list")
    return value


def ints(value: Json) -> tuple[int, ...]:
    """The numbers of a list, of 32 bits. Raises TypeError for other values; the caller makes it a BadZnode with the
    path.
    """
    if not isinstance(value, list) or not all(_is_int_of(item, _INT32) for item in value):
        raise TypeError(f"{value!r} is not a list of numbers")
    return tuple(cast("list[int]", value))


def partition_in(item: Json) -> TopicPartition:
    if not isinstance(item, dict):
        raise BadZnode(f"{item!r} is not a partition")
    return TopicPartition(str_in(item, "topic"), int_in(item, "partition"))
