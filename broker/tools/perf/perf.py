"""`odradek perf produce|consume|end-to-end`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser

if TYPE_CHECKING:
    import argparse

_DESCRIPTION: Final = """\
Measure throughput and latency, with the options and lines of Apache's tools:
  produce      as kafka-producer-perf-test
  consume      as kafka-consumer-perf-test
  end-to-end   as kafka.tools.EndToEndLatency

The client is this program, in Python: on a fast machine it is the limit and not the broker.
"""
_EXAMPLES: Final = """\
  odradek perf produce --topic t --num-records 500000 --record-size 100 --throughput -1 \\
      --producer-props bootstrap.servers=127.0.0.1:9092 batch.size=131072 linger.ms=5
  odradek perf consume --bootstrap-server 127.0.0.1:9092 --topic t --messages 500000
  odradek perf end-to-end 127.0.0.1:9092 t 10000 all 100
All three print their figures as one JSON object with --json.
"""
_MODULES: Final = {"produce": "perf_produce", "consume": "perf_consume", "end-to-end": "end_to_end"}


def main(arguments: Sequence[str]) -> int:
    """Measure. Returns the exit status."""
    command = command_parser("perf", _DESCRIPTION, examples=_EXAMPLES)
    command.add_argument("what", choices=_MODULES)
    what = command.parse_args(arguments[:1]).what
    status: int = import_module(f"odradek.broker.tools.perf.{_MODULES[what]}").main(arguments[1:])
    return status


def parser() -> argparse.ArgumentParser:
    """The options of all three."""
    from odradek.broker.tools.perf import perf_consume, perf_produce

    command = command_parser("perf", _DESCRIPTION, examples=_EXAMPLES)
    children = command.add_subparsers()
    for name in _MODULES:
        children.add_parser(name, help="measure", add_help=False).add_argument("--json", action="store_true")
    children.choices |= {"produce": perf_produce.parser(), "consume": perf_consume.parser()}
    return command
