"""The report of one run or more: tables, "behind Apache" first, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.benchmarks.comparison.machine import Machine
from tests.benchmarks.comparison.runner import Result
from tests.benchmarks.comparison.statistics import Comparison, spread


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command. Loads are averages of a minute."""

    command: str
    started: str
    machine: Machine
    load_before: float
    load_after: float
    duration_s: float
    pairs: int
    scale: float
    results: Sequence[Result]

    def as_json(self) -> dict[str, Any]:
        """With the ratios and medians, which `from_json` computes again."""
        found = asdict(self)
        for result, written in zip(self.results, found["results"], strict=True):
            for comparison, entry in zip(result.comparisons, written["comparisons"], strict=True):
                entry["ratios"] = comparison.ratios
                entry["behind"] = comparison.behind
                for side in ("ours", "theirs"):
                    values = getattr(comparison, side)
                    entry[f"{side}_spread"] = spread(values)._asdict() if values else None
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Run:
        results = [
            Result(
                **{
                    **result,
                    "series": None if result["series"] is None else tuple(result["series"]),
                    "comparisons": [
                        Comparison(each["name"], each["unit"], each["ours"], each["theirs"])
                        for each in result["comparisons"]
                    ],
                }
            )
            for result in found["results"]
        ]
        return cls(**{**found, "machine": Machine(**found["machine"]), "results": results})


def markdown(runs: Sequence[Run], plots: Sequence[str] = ()) -> str:
    """The whole report. `plots`: names of files beside it."""
    results = [result for run in runs for result in run.results]
    return "\n".join(
        [
            "# Report of `make bench`",
            "",
            *_about(runs),
            "",
            "## Behind Apache",
            "",
            *_behind(results),
            "",
            *(line for result in results for line in _section(result)),
            *(f"![{name}]({name})" for name in plots),
            "",
        ]
    )


def _about(runs: Sequence[Run]) -> Iterator[str]:
    for machine in dict.fromkeys(run.machine for run in runs):
        yield (
            f"{machine.processor}, {machine.cores} cores, {machine.memory_gb} GB; Linux {machine.kernel}; "
            f"Python {machine.python}; {machine.java}; {machine.apache}."
        )
    yield ""
    yield "| command | started | pairs | scale | duration, s | load before; after |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for run in runs:
        loads = f"{run.load_before:.1f}; {run.load_after:.1f}"
        yield f"| `{run.command}` | {run.started} | {run.pairs} | {run.scale:g} | {run.duration_s:.0f} | {loads} |"


def behind_apache(results: Sequence[Result]) -> list[tuple[Result, Comparison]]:
    """The figures with a median ratio on the wrong side of 1, the farthest behind first."""
    found = [
        (result, comparison)
        for result in results
        for comparison in result.comparisons
        if result.labels[-1].startswith("Apache") and (comparison.behind or 0) > 1
    ]
    return sorted(found, key=lambda each: -(each[1].behind or 0))


def _behind(results: Sequence[Result]) -> Iterator[str]:
    found = behind_apache(results)
    if not found:
        yield "No figure."
        return
    yield "| workload | figure | Odradek | Apache | ratio: median (range) | behind in |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for result, comparison in found:
        yield (
            f"| `{result.name}` | {comparison.name}, {comparison.unit} | {middle(comparison.ours)} "
            f"| {middle(comparison.theirs)} | {ratio(comparison)} "
            f"| {comparison.pairs_behind} of {len(comparison.ratios)} pairs |"
        )


def _section(result: Result) -> Iterator[str]:
    yield f"## {result.name}"
    yield ""
    yield f"{result.description} ({result.setup}; {result.duration_s:.0f} s in all)"
    yield ""
    if result.error:
        yield f"**No figures: {result.error.splitlines()[0]}**"
    else:
        yield f"| figure | {' | '.join(result.labels)} | ratio: median (range) |"
        yield f"| --- |{' --- |' * len(result.labels)} --- |"
        for comparison in result.comparisons:
            sides = [figure(values) for values in (comparison.ours, comparison.theirs)[: len(result.labels)]]
            yield f"| {comparison.name}, {comparison.unit} | {' | '.join(sides)} | {ratio(comparison)} |"
    yield ""


def table(result: Result) -> str:
    """A workload for the terminal."""
    lines = [f"\n{result.name}: {result.description} ({result.duration_s:.0f} s)"]
    if result.error:
        return "\n".join([*lines, f"no figures: {result.error}"])
    columns = [f"{label:>24}" for label in result.labels]
    lines.append(f"{'':<40}{''.join(columns)}   ratio: median (range)")
    for comparison in result.comparisons:
        values = (comparison.ours, comparison.theirs)[: len(result.labels)]
        cells = "".join(f"{figure(side):>24}" for side in values)
        lines.append(f"{f'{comparison.name}, {comparison.unit}':<40}{cells}   {ratio(comparison)}")
    return "\n".join(lines)


def figure(values: Sequence[float]) -> str:
    """The median, and the quartiles in brackets if there are several values."""
    if not values:
        return ""
    found = spread(values)
    if len(values) == 1:
        return digits(found.median)
    return f"{digits(found.median)} ({digits(found.lower_quartile)}–{digits(found.upper_quartile)})"


def middle(values: Sequence[float]) -> str:
    return digits(spread(values).median)


def ratio(comparison: Comparison) -> str:
    """The median of the ratios of the pairs, and the smallest and the largest."""
    if not comparison.ratios:
        return ""
    found = spread(comparison.ratios)
    return f"{found.median:.2f} ({found.low:.2f}–{found.high:.2f})"


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{decimals}f}"
