"""`odradek verify DIR...`: checks log directories, or the directories of single partitions, and prints what is wrong.

A finding is one line on stdout, `file:position: what`; without a position it concerns the whole file. Exit status 0
without findings, 1 with findings, 2 if something cannot be read or printed. Nothing is written; a broker may be running
there. `odradek.storage.verification` says what is checked, and what is accepted without a clean shutdown.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import add_output_options, command_parser
from odradek.broker.tools.command.output import Output
from odradek.storage.verification.findings import Finding
from odradek.storage.verification.log_directory import NothingToVerifyError, verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.protocol.topic_partition import TopicPartition

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_CANNOT_RUN: Final = 2

FINDINGS_PER_FILE_MAX: Final = 20
"""The findings of a file that are printed; more are counted. A corrupt file can have one for each entry."""


def main(arguments: Sequence[str]) -> int:
    """Verify the directories. Returns the exit status."""
    options = parser().parse_args(arguments)
    directories = options.directories
    out = Output.of(options)
    printer = FindingsPrinter(out)
    directory_of: dict[TopicPartition, str] = {}
    try:
        try:
            for directory in directories:
                for topic_partition in verify(directory, printer.report):
                    first = directory_of.setdefault(topic_partition, directory)
                    if first != directory:
                        where = os.path.join(directory, str(topic_partition))
                        twice = f"the partition is also in {first}: a broker does not start"
                        printer.report(Finding(where, None, twice))
        finally:
            printer.finish()
            out.close()
    except BrokenPipeError:
        raise
    except (OSError, NothingToVerifyError) as error:
        sys.stderr.write(f"odradek: {error}\n")
        return EXIT_CANNOT_RUN
    sys.stderr.write(f"{len(directory_of)} partitions, {printer.count} findings\n")
    return EXIT_FINDINGS if printer.count else EXIT_CLEAN


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "verify",
        "Check log directories and print what is wrong with them. Read-only; a broker may be running there. "
        "Exit status 0: no findings; 1: findings; 2: something cannot be read or printed.",
    )
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a log directory, or that of a partition")
    add_output_options(parser)
    return parser


class FindingsPrinter:
    """Prints findings as they arrive, at most `FINDINGS_PER_FILE_MAX` of a file."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._by_path: dict[str, int] = {}
        self.count = 0

    def report(self, finding: Finding) -> None:
        self.count += 1
        of_file = self._by_path[finding.path] = self._by_path.get(finding.path, 0) + 1
        if of_file <= FINDINGS_PER_FILE_MAX:
            row = {"file": finding.path, "position": finding.position, "finding": finding.message}
            self._out.result([row], [str(finding)])

    def finish(self) -> None:
        """Print the number of findings that were not printed."""
        for path, count in self._by_path.items():
            if count > FINDINGS_PER_FILE_MAX:
                self._out.note(f"{path}: {count - FINDINGS_PER_FILE_MAX} more findings")
