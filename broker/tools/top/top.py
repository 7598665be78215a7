"""`odradek top`: samples a cluster again and again, and draws it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import cancel, spawn
from odradek.broker.tools.data.client.properties import gather
from odradek.broker.tools.data.client.running import STDIN, STDOUT, run_with_client
from odradek.broker.tools.data.client.streams import InputStream
from odradek.broker.tools.data.common_options import add_cluster_options
from odradek.broker.tools.top.figures import Figures, figures
from odradek.broker.tools.top.sample import Sample, take_sample
from odradek.broker.tools.top.screen_state import HELP, ScreenState, split_keys

if TYPE_CHECKING:
    from rich.live import Live

    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts

_DESCRIPTION: Final = f"""\
A live screen of brokers, topics with their rates, and groups with their lag.

keys: {HELP}

Records a second come from the ends of the logs, bytes a second from their sizes on the disk, what a group reads from
its committed offsets. A frame compares two samples. Without a terminal, and with --once, one frame is printed.
"""
_EXAMPLES: Final = """\
  odradek top
  odradek top -b broker-1:9092 --interval 5
  odradek top --once --json | jq '.groups[] | select(.lag > 1000)'
  odradek top --json --interval 60 >> rates.jsonl        a line for each minute
"""
CLIENT_ID: Final = "odradek-top"


def main(arguments: Sequence[str]) -> int:
    """Show the cluster. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if not 0 < options.interval < float("inf"):
        command.error("--interval must be a number greater than 0")

    def make_work() -> tuple[_Top, Mapping[str, str]]:
        return _Top(options), gather(options.command_config, options.properties)

    return run_with_client(make_work, options.bootstrap_server, client_id=CLIENT_ID, also=())


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("top", _DESCRIPTION, examples=_EXAMPLES)
    add_cluster_options(parser, "client")
    parser.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="between samples; default 2")
    parser.add_argument("--once", action="store_true", help="print one frame as plain tables")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each frame, in a line")
    parser.add_argument("--internal", action="store_true", help="show internal topics, too")
    return parser


class _Top:
    """Samples and prints."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._interval_ms = max(1, int(options.interval * 1000))

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        is_terminal = os.isatty(STDIN) and os.isatty(STDOUT)
        if self._options.json or self._options.once or not is_terminal:
            await interrupts.during(self._print(client))
        else:
            await _Screen(client, self._interval_ms, ScreenState(with_internal=self._options.internal)).run(interrupts)

    async def _print(self, client: DataClient) -> None:
        before = await take_sample(client)
        while True:
            await client.wait(self._interval_ms)
            after = await take_sample(client)
            self._write(figures(before, after))
            if self._options.once or not self._options.json:
                return
            before = after

    def _write(self, found: Figures) -> None:
        if self._options.json:
            sys.stdout.write(json.dumps(found.as_json(), separators=(",", ":")) + "\n")
        else:
            from rich.console import Console

            from odradek.broker.tools.top.frame import draw

            # Without a terminal the tables are as wide as their contents.
            console = Console(width=None if sys.stdout.isatty() else 10_000)
            console.print(draw(found, ScreenState(with_internal=self._options.internal), height=None))
        sys.stdout.flush()


class _Screen:
    """The live screen."""

    def __init__(self, client: DataClient, interval_ms: int, state: ScreenState) -> None:
        self._client = client
        self._interval_ms = interval_ms
        self._state = state
        self._figures: Figures | None = None
        self._note = ""

    async def run(self, interrupts: Interrupts) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console()
        with _single_keys(), Live(console=console, screen=True, auto_refresh=False) as live:
            sampling = spawn(self._sample(live))
            try:
                await interrupts.during(self._read_keys(live))
            finally:
                await cancel([sampling])

    async def _sample(self, live: Live) -> None:
        before: Sample | None = None
        while True:
            try:
                after = await take_sample(self._client)
                if not self._state.is_paused or self._figures is None:
                    self._figures = figures(before or after, after)
                before = after
                self._note = ""
            except CommandFailed as error:  # it is shown until the cluster answers again
                self._note = str(error)
            self._draw(live)
            await self._client.wait(self._interval_ms)

    async def _read_keys(self, live: Live) -> None:
        keys = InputStream(STDIN)
        while not self._state.is_over:
            data = await keys.read()
            if not data:
                return
            for key in split_keys(data):
                rows = [] if self._figures is None else getattr(self._figures, self._state.table)
                self._state = self._state.key(key, list(rows[0]) if rows else [])
            self._draw(live)

    def _draw(self, live: Live) -> None:
        from odradek.broker.tools.top.frame import draw

        if self._figures is not None:
            live.update(
                draw(self._figures, self._state, height=live.console.size.height, note=self._note), refresh=True
            )
        elif self._note:
            live.update(self._note, refresh=True)


@contextmanager
def _single_keys() -> Iterator[None]:
    """The terminal hands over each key at once and does not print it."""
    before = termios.tcgetattr(STDIN)
    tty.setcbreak(STDIN)
    try:
        yield
    finally:
        termios.tcsetattr(STDIN, termios.TCSADRAIN, before)
