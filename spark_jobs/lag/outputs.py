"""The folder that `consumer_lag` writes: `index.html`, `overview.png` and `plots/`; `history/` is in `history.py`.

A file is replaced in one step, so a reader never sees half of one. `plots/` has the plots of the last sample only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.common.connector import SetupError
from spark_jobs.common.job import JobError
from spark_jobs.common.whole_file import write_whole
from spark_jobs.lag.page import page
from spark_jobs.lag.trends import Sample
from spark_jobs.lag.verdicts import GroupReport

if TYPE_CHECKING:
    from spark_jobs.lag.lag_options import LagOptions


class Outputs:
    """Writes the outputs of samples. `plotted`: the samples of the groups that get a plot."""

    def __init__(self, options: LagOptions) -> None:
        assert options.output is not None
        self._options = options
        self._folder = Path(options.output).absolute()
        self.history = options.history or (self._folder / "history").as_uri()

    @property
    def page_uri(self) -> str:
        return (self._folder / "index.html").as_uri()

    def write(self, reports: Sequence[GroupReport], plotted: Mapping[str, Sequence[Sample]], now_ms: int) -> None:
        """Replace the page and the plots. Raises: JobError if they cannot be written."""
        try:
            self._write(reports, plotted, now_ms)
        except OSError as error:
            raise JobError(f"--output {self._folder} cannot be written: {error.strerror}") from None

    def _write(self, reports: Sequence[GroupReport], plotted: Mapping[str, Sequence[Sample]], now_ms: int) -> None:
        try:
            from spark_jobs.lag.plots import file_name, group_plot, overview_plot
        except ImportError as error:
            raise SetupError(f"{error}: plots need matplotlib, .venv/bin/pip install matplotlib") from None
        overview = overview_plot(plotted) if plotted else None
        plots = {group: group_plot(group, samples) for group, samples in plotted.items()}
        folder = self._folder / "plots"
        folder.mkdir(parents=True, exist_ok=True)
        files = {file_name(group): png for group, png in plots.items()}
        for name, png in files.items():
            write_whole(folder / name, png)
        for old in folder.glob("*.png"):
            if old.name not in files:
                old.unlink()
        if overview is not None:
            write_whole(self._folder / "overview.png", overview)
        text = page(
            reports,
            cluster=self._options.connection.bootstrap_servers,
            now_ms=now_ms,
            window_ms=self._options.window_ms,
            overview=overview,
            plots=plots,
            refresh_ms=None if self._options.once else self._options.trigger_ms,
        )
        write_whole(self._folder / "index.html", text.encode())
