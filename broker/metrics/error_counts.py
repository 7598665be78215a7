"""Counts the error codes of a response.

The codes of the level nearest to the top that has any: of the response, of its topics or groups, or of their
partitions. Of Fetch, both those of the response and of the partitions. A response without codes counts as one
success.

Kafka: AbstractResponse.errorCounts.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.protocol.codec.field import Kind, StructType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.protocol.codec.schema import Response

Path = tuple[str, ...]
"""The arrays on the way, and the field with the code."""

Counts = defaultdict[int, int]
"""Error code -> how often there was one."""


def count_errors(response: Response, counts: Counts) -> None:
    """Add the codes of `response` to `counts`."""
    if isinstance(response, ProduceResponse):
        for produced in response.responses:
            for part in produced.partition_responses:
                counts[part.error_code] += 1
        return
    kind = type(response)
    paths = _paths_of.get(kind)
    if paths is None:
        paths = _paths_of[kind] = error_paths(kind)
    if not paths:
        counts[ErrorCode.NONE] += 1
    for *arrays, field in paths:
        found: Iterable[object] = (response,)
        for name in arrays:
            found = [inner for outer in found for inner in getattr(outer, name) or ()]
        for one in found:
            counts[getattr(one, field)] += 1


_paths_of: dict[type[Response], tuple[Path, ...]] = {}
"""The paths that were found so far: they depend on nothing but the type."""


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
