"""SIGTERM under load, fifty times: over within ten seconds, nothing acknowledged is lost, nothing has to be recovered.

Every third stop gets a second signal, which may end the broker at once; then a recovery is right. The seed is printed;
ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_STOPS shortens the run.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.admin import Admin
from tests.support.loads.numbered_load import PARTITIONS, Load, check_complete
from tests.support.processes.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

STOPS = int(os.environ.get("ODRADEK_SOAK_STOPS", "50"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
STOPPED_WITHIN_S = 10
RECOVERED = "no clean shutdown file was found"


def test_stops_under_load(tmp_path: Path) -> None:
    print(f"seed {SEED}, {STOPS} stops")
    rng = random.Random(SEED)
    broker = OdradekBroker(tmp_path, {"log.segment.bytes": "200000"})
    broker.start()
    topic = Admin(broker.bootstrap).create_topic("load", PARTITIONS)
    load = Load(broker.bootstrap, topic, idempotent=True)
    longest_s = 0.0
    for number in range(STOPS):
        load.await_progress()
        time.sleep(rng.uniform(0, 0.5))
        is_second = number % 3 == 2
        began = time.monotonic()
        if is_second:
            os.kill(broker.pid, signal.SIGTERM)
            time.sleep(rng.uniform(0, 0.05))
            with suppress(ProcessLookupError):
                os.kill(broker.pid, signal.SIGTERM)
            broker.wait_for_end()
        else:
            broker.stop()
        longest_s = max(longest_s, time.monotonic() - began)
        broker.start()
        assert is_second or RECOVERED not in broker.log_text(), f"stop {number}"
    load.finish()
    print(f"{STOPS} stops, {longest_s:.2f} s at most, {load.total} records")
    assert longest_s < STOPPED_WITHIN_S
    check_complete(load, broker.bootstrap)
    broker.stop_cleanly()
