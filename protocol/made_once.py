"""One object in place of many equal ones: for the answers about a request that names the same thing 100,000 times.

An element of such a request has a few bytes, and its answer, with 60 to 150 bytes, would be the largest part of what
the request costs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

FEW: Final = 1000
"""Objects of a request; so many take 0.2 MB at most, and each is made on its own, without looking for an equal one."""

REMEMBERED: Final = 256
"""Of the objects that were made. If no two were equal, more of them would only cost memory."""


def made_once(make: Callable[P, T], count: int) -> Callable[P, T]:
    """`make`, which with equal arguments returns the same object, if `count`, the number of calls, is large.

    `make` depends on its arguments alone, which are hashable, and nobody changes what it has made.
    """
    return make if count <= FEW else cast("Callable[P, T]", lru_cache(REMEMBERED)(make))
