"""Counts the error codes of a response.

The codes of the level nearest to the top that has any: of the response, of its topics or groups, or of their
partitions. Of Fetch, both those of the response and of the partitions. A response without codes counts as one
success.

Kafka: AbstractResponse.errorCounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.codec.field import Kind, StructType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.protocol.codec.schema import Response

Path = tuple[str, ...]
"""The arrays on the way, and the field with the code."""


class ErrorCounts:
    """Finds the codes of each type of response once, and then counts them."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[type[Response], tuple[Path, ...]] = {}

    def add(self, response: Response, counts: dict[int, int]) -> None:
        """Add the codes of `response` to `counts`, by code."""
        kind = type(response)
        paths = self._paths.get(kind)
        if paths is None:
            paths = self._paths[kind] = error_paths(kind)
        if not paths:
            counts[ErrorCode.NONE] = counts.get(ErrorCode.NONE, 0) + 1
        for *arrays, field in paths:
            found: Iterable[object] = (response,)
            for name in arrays:
                found = [inner for outer in found for inner in getattr(outer, name) or ()]
            for one in found:
                code = getattr(one, field)
                counts[code] = counts.get(code, 0) + 1


def error_paths(response: type[Response]) -> tuple[Path, ...]:
    """Where a type of response has the codes that are counted."""
    if issubclass(response, FetchResponse):
        return (("error_code",), ("responses", "partitions", "error_code"))
    level: list[tuple[Path, StructType]] = [((), response)]
    while level:
        found = [
            (*path, field.name)
            for path, struct in level
            for field in struct.FIELDS
            if field.name.endswith("error_code")
        ]
        if found:
            return tuple(found)
        level = [
            ((*path, field.name), field.element)
            for path, struct in level
            for field in struct.FIELDS
            if field.kind is Kind.ARRAY and isinstance(field.element, StructType)
        ]
    return ()
