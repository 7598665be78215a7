"""Small counts of the hostile soaks, on one broker. The full ones are in `tests/soak/network/`.

Also with small counts: readers that never read, and ten thousand requests on one connection (`test_connections.py`);
arrays as long as a frame allows, and bodies of one byte (`test_hostile_requests.py`, `test_hostile_frames.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.loads.hostile import hostile_input
from tests.support.loads.hostile.slow_clients import slow_and_idle
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.wire.raw_topics import make_topic

FRAMES = 3_000
JUNK = 200
SIZES = 20
IDLE = 100
SLOW = 100
CALLS = 200
MAX_IDLE_S = 4.0
SEED = 7
"""The same requests in each run; the soaks have others each time."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    settings = {**hostile_input.SETTINGS, "connections.max.idle.ms": str(int(MAX_IDLE_S * 1000))}
    with running(OdradekBroker(tmp_path_factory.mktemp("hostile"), settings)) as process:
        yield process


def test_mutated_requests(broker: OdradekBroker) -> None:
    hostile_input.mutated_requests(broker, FRAMES, SEED)


def test_impossible_sizes(broker: OdradekBroker) -> None:
    hostile_input.impossible_sizes(broker, SIZES)


def test_other_protocols(broker: OdradekBroker) -> None:
    hostile_input.other_protocols(broker, JUNK, SEED)


def test_bombs(broker: OdradekBroker) -> None:
    hostile_input.bombs(broker, 1)


def test_slow_and_idle_clients(broker: OdradekBroker) -> None:
    make_topic(broker, "t")
    slow_and_idle(broker, idle=IDLE, slow=SLOW, max_idle_s=MAX_IDLE_S, calls=CALLS)
