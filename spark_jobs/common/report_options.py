"""Where the rows go that a job finds: on the terminal, and into a folder."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from spark_jobs.common.options import count

DEFAULT_SHOWN = 20
FORMATS = ("parquet", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """How many rows are printed, and the folder of all."""

    shown: int
    output: str | None
    output_format: str

    def more(self, total: int) -> list[str]:
        """For the terminal: the line below the rows that are printed, if there are more of them."""
        return [f"... and {total - self.shown:,} more: --output writes all of them"] if total > self.shown > 0 else []


def add_report_arguments(container: argparse._ActionsContainer, found: str) -> None:
    """`--show`, `--output` and `--output-format`; `report_of` reads them. `found`: what the rows are."""
    container.add_argument(
        "--show",
        type=count,
        default=DEFAULT_SHOWN,
        metavar="N",
        help=f"print the first N {found} (default: %(default)s)",
    )
    container.add_argument(
        "--output", metavar="PATH", help=f"write all {found}, with positions, into this folder, which must be new"
    )
    container.add_argument("--output-format", choices=FORMATS, default=FORMATS[0], help="default: %(default)s")


def report_of(args: argparse.Namespace) -> ReportOptions:
    return ReportOptions(shown=args.show, output=args.output, output_format=args.output_format)
