"""Plots of the lag of groups as PNG, by matplotlib without a display (Agg). Imported only where plots are made."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from spark_jobs.lag.trends import Sample

SIZE_INCHES = (8.0, 4.2)
DPI = 90
PARTITION_LINES = 8
GROUP_LINES = 10
LONGEST_NAME = 100

Line = list[tuple[int, int]]
"""Times in ms, and values."""


def group_plot(group: str, samples: Sequence[Sample]) -> bytes:
    """The lag of a group: all of it, and the partitions with the most."""
    lines = partition_lines(samples)
    drawn = {f"{topic}-{partition}": line for (topic, partition), line in lines.items()}
    if len(lines) > 1:
        drawn = {"all partitions": total_line(samples), **drawn}
    return _png(f"lag of {group} (records)", drawn)


def overview_plot(samples: Mapping[str, Sequence[Sample]]) -> bytes:
    """The lag of the groups with the most."""
    lines = {group: total_line(of_group) for group, of_group in samples.items()}
    largest = sorted(lines, key=lambda group: (-max((value for _, value in lines[group]), default=0), group))
    return _png("lag of groups (records)", {group: lines[group] for group in largest[:GROUP_LINES]})


def partition_lines(samples: Sequence[Sample]) -> dict[tuple[str, int], Line]:
    """The lag of the partitions that have had the most."""
    lines: dict[tuple[str, int], Line] = {}
    for sample in sorted(samples):
        if sample.lag is not None:
            lines.setdefault((sample.topic, sample.partition), []).append((sample.time_ms, sample.lag))
    largest = sorted(lines, key=lambda key: (-max(value for _, value in lines[key]), key))
    return {key: lines[key] for key in largest[:PARTITION_LINES]}


def total_line(samples: Sequence[Sample]) -> Line:
    """The lag of all partitions together at each time."""
    totals: dict[int, int] = {}
    for sample in samples:
        if sample.lag is not None:
            totals[sample.time_ms] = totals.get(sample.time_ms, 0) + sample.lag
    return sorted(totals.items())


def file_name(group: str) -> str:
    """A name for the plot of a group: every file system takes it, and no two groups share one."""
    name = quote(group, safe="")
    if len(name) > LONGEST_NAME or name.startswith("."):
        name = f"{name[:LONGEST_NAME].lstrip('.')}-{hashlib.sha256(group.encode()).hexdigest()[:16]}"
    return f"{name}.png"


def _png(title: str, lines: Mapping[str, Line]) -> bytes:
    figure = Figure(figsize=SIZE_INCHES, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, line in lines.items():
        times = date2num([datetime.fromtimestamp(time_ms / 1000, UTC) for time_ms, _ in line])
        axes.plot(times, [value for _, value in line], label=_plain(name), marker=".", linewidth=1.2, markersize=3)
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_title(_plain(title), fontsize=10)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    if lines:
        axes.legend(fontsize=7, loc="best")
    out = io.BytesIO()
    with warnings.catch_warnings():  # of letters that the font lacks, which are drawn as boxes
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(out, format="png")
    return out.getvalue()


def _plain(text: str) -> str:
    """Text that matplotlib shows as it is: no formulas, no hidden labels, not too long."""
    shown = text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"
    shown = shown.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
