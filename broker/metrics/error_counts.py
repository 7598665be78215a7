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
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.protocol.codec.field import Kind, StructType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    if has_own_code_only(response_type):
        return _count_own
    paths = [(arrays, attrgetter(field)) for *arrays, field in error_paths(response_type)]
    return partial(_count, paths)


def has_own_code_only(response_type: type[Response]) -> bool:
    """Whether the only code that is counted is the field `error_code` of the response."""
    return error_paths(response_type) == (("error_code",),)


def _count_own(response: Response, counts: Counts) -> None:
    counts[response.error_code] += 1  # type: ignore[attr-defined]


def _count(paths: Sequence[tuple[Sequence[str], Callable[[object], int]]], response: Response, counts: Counts) -> Steps:
    """`paths`: the arrays on the way, and what takes the code."""
    if not paths:
        counts[ErrorCode.NONE] += 1
    left = CODES_A_STEP
    for arrays, code_of in paths:
        for group in _groups(response, arrays):
            for first in range(0, len(group) or 1, CODES_A_STEP):
                codes = [*map(code_of, group[first : first + CODES_A_STEP])]
                if any(codes):
                    for code in codes:
                        counts[code] += 1
                elif codes:  # the frequent case, without a step of the interpreter for each code
                    counts[ErrorCode.NONE] += len(codes)
                left -= len(codes) or 1
                if left <= 0:
                    left = CODES_A_STEP
                    yield None


def _groups(outer: object, arrays: Sequence[str]) -> Iterator[Sequence[object]]:
    """The objects with codes, in the arrays that they come in."""
    if not arrays:
        yield (outer,)
    elif len(arrays) == 1:
        yield getattr(outer, arrays[0]) or ()
    else:
        for inner in getattr(outer, arrays[0]) or ():
            yield from _groups(inner, arrays[1:])


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
