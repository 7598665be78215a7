"""Hostile input by the million: mutated requests, impossible sizes, other protocols, bombs of all codecs.

All the time the broker must answer other clients within a second, log no traceback, and not grow. The seed is printed;
ODRADEK_SOAK_SEED repeats it. ODRADEK_SOAK_FRAMES shortens the run; the other counts follow it. `make test` runs small
counts of the same (`tests/conformance/wire/hostile/test_hostile_counts.py`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.loads.hostile import hostile_input
from tests.support.processes.odradek_process import OdradekBroker, running

pytestmark = pytest.mark.soak

FRAMES = int(os.environ.get("ODRADEK_SOAK_FRAMES", "1000000"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
SIZES = max(10, FRAMES // 1_000)
JUNK = max(10, FRAMES // 100)
BOMBS = max(1, FRAMES // 20_000)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, hostile_input.SETTINGS)) as process:
        yield process


def test_mutated_requests(broker: OdradekBroker) -> None:
    hostile_input.mutated_requests(broker, FRAMES, SEED)


def test_impossible_sizes(broker: OdradekBroker) -> None:
    hostile_input.impossible_sizes(broker, SIZES)


def test_what_speaks_another_protocol(broker: OdradekBroker) -> None:
    hostile_input.other_protocols(broker, JUNK, SEED)


def test_bombs(broker: OdradekBroker) -> None:
    hostile_input.bombs(broker, BOMBS)
