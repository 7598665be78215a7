"""What a seed decides: names, versions, values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from odradek.protocol.api import API

T = TypeVar("T")

TOPICS = ("t0", "t1", "t2", "t3")
GROUPS = ("g0", "g1", "g2")
TRANSACTIONAL_IDS = ("x0", "x1", "x2")
IDEMPOTENT_PRODUCERS = ("p0", "p1")


class Choices:
    """The random decisions of one sequence."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *values: T) -> T:
        return self._random.choice(values)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def topic(self) -> str:
        return self.pick(*TOPICS) if self.chance(0.95) else self.pick("missing", "a b", "")

    def partition(self) -> int:
        return self.pick(0, 0, 0, 0, 1, 1, 2, 5, -1)

    def version(self, api_key: int, first: int | None = None) -> int:
        """The newest one half of the time."""
        spec = API[api_key]
        lowest = spec.min_version if first is None else first
        return self.pick(spec.max_version, self._random.randint(lowest, spec.max_version))

    def configs(self, table: Mapping[str, Sequence[str]], count: int) -> list[tuple[str, str]]:
        return [(name, self.pick(*table[name])) for name in self._random.sample(sorted(table), count)]
