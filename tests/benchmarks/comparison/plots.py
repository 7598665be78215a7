"""Plots of a report as PNG, by matplotlib without a display (Agg): the ratios of a group, and how cost grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.benchmarks.comparison.runner import Result
from tests.benchmarks.comparison.statistics import spread

DPI = 90
WIDTH_INCHES = 9.0
ROW_INCHES = 0.28
PLOT_INCHES = 3.0


def draw(results: Sequence[Result], directory: Path) -> list[str]:
    """Write the plots into the directory; their names. There is a plot for each group and for each series."""
    names = []
    for name, figure in (*_ratio_plots(results), *_growth_plots(results)):
        FigureCanvasAgg(figure).print_png(str(directory / f"{name}.png"))
        names.append(f"{name}.png")
    return names


def by_group(results: Sequence[Result]) -> Mapping[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        if any(comparison.ratios for comparison in result.comparisons) and result.series is None:
            groups.setdefault(result.name.partition("/")[0], []).append(result)
    return groups


def by_series(results: Sequence[Result]) -> Mapping[tuple[str, str], list[tuple[float, Result]]]:
    """The results of a series in order of what grows; the key is the group and what grows."""
    found: dict[tuple[str, str], list[tuple[float, Result]]] = {}
    for result in results:
        if result.series is not None and result.comparisons:
            grows, amount = result.series
            found.setdefault((result.name.partition("/")[0], grows), []).append((amount, result))
    return {key: sorted(points, key=lambda point: point[0]) for key, points in found.items()}


def _ratio_plots(results: Sequence[Result]) -> Iterator[tuple[str, Figure]]:
    for group, of_group in by_group(results).items():
        rows = [
            (f"{result.name.partition('/')[2]} {comparison.name}, {comparison.unit}".strip(), comparison)
            for result in of_group
            for comparison in result.comparisons
            if comparison.ratios
        ]
        figure = Figure(figsize=(WIDTH_INCHES, 1.2 + ROW_INCHES * len(rows)), dpi=DPI, layout="constrained")
        axes: Axes = figure.add_subplot()
        for height, (_, comparison) in enumerate(reversed(rows)):
            found = spread(comparison.ratios)
            color = "tab:red" if (comparison.behind or 0) > 1 else "tab:blue"
            axes.plot([found.low, found.high], [height, height], color=color, linewidth=1)
            axes.plot(comparison.ratios, [height] * len(comparison.ratios), "|", color=color)
            axes.plot([found.median], [height], "o", color=color, markersize=4)
        axes.set_yticks(range(len(rows)), [label for label, _ in reversed(rows)], fontsize=7)
        axes.axvline(1, color="gray", linewidth=0.8)
        axes.set_xscale("log")
        ours, theirs = of_group[0].labels
        axes.set_title(f"{group}: {ours} / {theirs}, each pair, range and median (red: behind)", fontsize=9)
        yield f"ratios-{group}", figure


def _growth_plots(results: Sequence[Result]) -> Iterator[tuple[str, Figure]]:
    for (group, grows), points in by_series(results).items():
        names = dict.fromkeys((each.name, each.unit) for _, result in points for each in result.comparisons)
        figure = Figure(figsize=(WIDTH_INCHES, PLOT_INCHES * len(names)), dpi=DPI, layout="constrained")
        for place, (name, unit) in enumerate(names):
            axes: Axes = figure.add_subplot(len(names), 1, place + 1)
            for side, label in zip(("ours", "theirs"), points[0][1].labels, strict=False):
                line = [
                    (amount, spread(getattr(comparison, side)))
                    for amount, result in points
                    for comparison in result.comparisons
                    if (comparison.name, comparison.unit) == (name, unit) and getattr(comparison, side)
                ]
                amounts = [amount for amount, _ in line]
                [drawn] = axes.plot(amounts, [values.median for _, values in line], "o-", label=label)
                low, high = ([getattr(values, end) for _, values in line] for end in ("low", "high"))
                axes.fill_between(amounts, low, high, color=drawn.get_color(), alpha=0.15)
            axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(grows, fontsize=8)
            axes.set_title(f"{group}: {name}, {unit}", fontsize=9)
            axes.legend(fontsize=7)
        yield f"growth-{group}-{grows.replace(' ', '-')}", figure
