"""Clients that are slow, silent or never read, by the thousand; other clients are served as before.

ODRADEK_SOAK_CLIENTS shortens the run: it is the number of idle clients, and the other counts follow it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.loads.hostile.slow_clients import never_read, slow_and_idle
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.wire.raw_topics import make_topic

pytestmark = pytest.mark.soak

IDLE = int(os.environ.get("ODRADEK_SOAK_CLIENTS", "5000"))
TRICKLING = max(1, IDLE // 5)
READERS = max(1, IDLE // 50)
MAX_IDLE_S = 20
LOG_BYTES = 100_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, {"connections.max.idle.ms": str(MAX_IDLE_S * 1000)})) as process:
        make_topic(process, "t")
        yield process


def test_slow_and_idle_clients_cost_others_nothing(broker: OdradekBroker) -> None:
    slow_and_idle(broker, idle=IDLE, slow=TRICKLING, max_idle_s=MAX_IDLE_S)


def test_clients_that_never_read_their_fetch(broker: OdradekBroker) -> None:
    """Each asks for 100 MB and reads nothing."""
    never_read(broker, readers=READERS, log_bytes=LOG_BYTES)
