"""Counts of verdicts, and their lines for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

MOST_KINDS = 20
"""The most frequent ones are printed; a schema has few, but recursion makes more."""


class Counts:
    """Counts of one batch or of all, by kind of verdict; None: good records."""

    def __init__(self) -> None:
        self._of: Counter[str | None] = Counter()

    def add(self, counts: Mapping[str | None, int]) -> None:
        self._of.update(counts)

    @property
    def good(self) -> int:
        return self._of[None]

    @property
    def bad(self) -> int:
        return self._of.total() - self.good

    def lines(self, indent: str = "  ") -> list[str]:
        """One line for each reason, the most frequent first."""
        reasons = sorted(
            ((kind, count) for kind, count in self._of.items() if kind is not None),
            key=lambda each: (-each[1], each[0]),
        )
        lines = [f"{indent}{count} x {kind}" for kind, count in reasons[:MOST_KINDS]]
        if len(reasons) > MOST_KINDS:
            rest = sum(count for _, count in reasons[MOST_KINDS:])
            lines.append(f"{indent}{rest} x {len(reasons) - MOST_KINDS} other reasons")
        return lines
