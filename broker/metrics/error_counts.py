"""Counts the error codes of a response.

The codes of the level nearest to the top that has any: of the response, of its topics or groups, or of their
partitions. Of Fetch, both those of the response and of the partitions. A response without codes counts as one
success.

Kafka: AbstractResponse.errorCounts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from odradek.protocol.codec.field import Kind, StructType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.protocol.codec.schema import Response
    from odradek.timer.sliced_work import Steps

Path = tuple[str, ...]
"""The arrays on the way, and the field with the code."""

Counts = defaultdict[int, int]
"""Error code -> how often there was one."""

CountErrors: TypeAlias = "Callable[[Response, Counts], Steps | None]"
"""Adds the codes of a response to the counts. Of one that may be large it returns the steps that do it."""

_OF_FETCH: Final = (("error_code",), ("responses", "partitions", "error_code"))

CODES_A_STEP: Final = 500
"""A step takes a tenth of a millisecond."""


def counting(response_type: type[Response]) -> CountErrors:
    """The function that counts the errors of this type."""
    paths = error_paths(response_type)
    if paths == (("error_code",),):
        return _count_own
    return _count_fetched if paths == _OF_FETCH else partial(_count, paths)


def _count_own(response: Response, counts: Counts) -> None:
    counts[response.error_code] += 1  # type: ignore[attr-defined]


def _count_fetched(response: Response, counts: Counts) -> Steps | None:
    """As `_count`, in a tenth of the time for the most frequent response: one with a single topic."""
    fetched = cast("FetchResponse", response)
    topics = fetched.responses
    if len(topics) != 1 or len(partitions := topics[0].partitions) > CODES_A_STEP:
        return _count(_OF_FETCH, response, counts)
    counts[fetched.error_code] += 1
    for partition in partitions:
        counts[partition.error_code] += 1
    return None


def _count(paths: tuple[Path, ...], response: Response, counts: Counts) -> Steps:
    for number, code in enumerate(_codes(paths, response), 1):
        counts[code] += 1
        if not number % CODES_A_STEP:
            yield None


def _codes(paths: tuple[Path, ...], response: Response) -> Iterator[int]:
    if not paths:
        yield ErrorCode.NONE
    for *arrays, field in paths:
        found: Iterable[object] = (response,)
        for name in arrays:
            found = _inner(found, name)
        for one in found:
            yield getattr(one, field)


def _inner(found: Iterable[object], name: str) -> Iterator[object]:
    for outer in found:
        yield from getattr(outer, name) or ()


def error_paths(response: type[Response]) -> tuple[Path, ...]:
    """Where a type of response has the codes that are counted."""
    if issubclass(response, FetchResponse):
        return _OF_FETCH
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
