"""The recorded counts, in a file beside this one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.counts.counting import Counts

FILE = Path(__file__).with_name("recorded.json")


def recorded() -> dict[str, Counts]:
    """By the name of the sequence."""
    if not FILE.exists():
        return {}
    return {name: Counts(**counts) for name, counts in json.loads(FILE.read_text("utf-8")).items()}


def record(counts: Mapping[str, Counts]) -> None:
    """Write the file."""
    values = {name: asdict(one) for name, one in counts.items()}
    FILE.write_text(json.dumps(values, indent=2) + "\n", "utf-8")
