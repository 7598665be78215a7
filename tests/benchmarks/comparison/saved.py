"""Reports on the disk: report.md, report.json and plots in one directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.comparison import plots
from tests.benchmarks.comparison.report import Run, markdown


def write_report(runs: Sequence[Run], directory: Path) -> Path:
    """One report of all the runs; the path of its Markdown."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "report.json").write_text(json.dumps([run.as_json() for run in runs], indent=1, ensure_ascii=False))
    names = plots.draw([result for run in runs for result in run.results], directory)
    report = directory / "report.md"
    report.write_text(markdown(runs, names))
    return report


def saved(path: Path) -> list[Run]:
    """The runs of a report.json."""
    return [Run.from_json(run) for run in json.loads(path.read_text())]
