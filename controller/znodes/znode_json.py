"""JSON in znodes: compact on the way out, and on the way in every value checked before it is used.

Whoever has a ZooKeeper shell can write a node, so a value of the wrong kind is an ordinary error: `BadZnode` names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

from odradek.protocol.topic_partition import TopicPartition

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class BadZnode(Exception):
    """A node's bytes are not what they must be."""


def encode(node: dict[str, Json]) -> bytes:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def parse(data: bytes | None) -> Json:
    """The JSON value, or None for what is no JSON."""
    if not data:
        return None
    try:
        return cast("Json", json.loads(data))
    except (ValueError, RecursionError):  # thousands of brackets are no JSON of anybody's
        return None


def json_object(data: bytes | None, path: str) -> dict[str, Json]:
    node = parse(data)
    if not isinstance(node, dict):
        raise BadZnode(f"{path} holds no JSON object: {data!r}")
    return node


def int_in(node: Mapping[str, Json], key: str, default: int | None = None) -> int:
    value = node.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadZnode(f"{key} is {value!r}, not a number")
    return value


def str_in(node: Mapping[str, Json], key: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        raise BadZnode(f"{key} is {value!r}, not a string")
    return value


def list_in(node: Mapping[str, Json], key: str) -> list[Json]:
    value = node.get(key)
    if not isinstance(value, list):
        raise BadZnode(f"{key} is {value!r}, not a list")
    return value


def ints(value: Json) -> tuple[int, ...]:
    """The numbers of a list; TypeError for anything else, because the caller knows what node it is."""
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise TypeError(f"{value!r} is no list of numbers")
    return tuple(cast("list[int]", value))


def partition_in(item: Json) -> TopicPartition:
    if not isinstance(item, dict):
        raise BadZnode(f"{item!r} is no partition")
    return TopicPartition(str_in(item, "topic"), int_in(item, "partition"))
