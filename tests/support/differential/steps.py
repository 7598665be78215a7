"""One request of a sequence that two brokers get, and what each of them has told before: ids, epochs, sequences.

A step is the same for both brokers. Its fields are a function of what the broker has told, because ids differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from odradek.protocol.codec.field import FRESH
from odradek.protocol.codec.schema import Kind, Request, Response, Struct
from tests.support.wire.requests import build


@dataclass
class Known:
    """What one broker has told."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Id and epoch by the producer's name."""
    sequences: dict[tuple[str, int, str, int], int] = field(default_factory=dict)
    """The next one, by the producer's name and epoch, topic and partition."""
    sessions: list[tuple[int, int]] = field(default_factory=list)
    """Ids of fetch sessions with their next epochs, the last three."""

    def producer(self, name: str) -> tuple[int, int]:
        return self.producers.get(name, (77, 0))


@dataclass(frozen=True)
class Step:
    """`learn` gets an answer without an error at its top."""

    api_key: int
    version: int
    fields: Callable[[Known], dict[str, object]]
    learn: Callable[[Known, Response], None] = lambda known, response: None
    settles: bool = False
    """Whether a transaction may end: markers are written behind the answer."""
    changes_topics: bool = False

    def request(self, known: Known) -> Request:
        return fitted(build(self.api_key, **self.fields(known)), self.version)


S = TypeVar("S", bound=Struct)


def fitted(message: S, version: int) -> S:
    """The message with the defaults of the fields that `version` does not have."""
    for each in message.FIELDS:
        value = getattr(message, each.name)
        if not each.versions.covers(version) and not each.tagged.covers(version):
            setattr(message, each.name, _default(each.kind, each.element) if each.default is FRESH else each.default)
        elif value is None and not each.nullable.covers(version):
            setattr(message, each.name, _default(each.kind, each.element))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct):
                fitted(item, version)
    return message


def _default(kind: Kind, element: object) -> object:
    if kind is Kind.STRUCT:
        assert isinstance(element, type)
        return element()
    return {Kind.ARRAY: [], Kind.STRING: "", Kind.BYTES: b""}[kind]
