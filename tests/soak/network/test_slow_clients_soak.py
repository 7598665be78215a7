"""Clients that are slow, silent or never read, by the thousand; other clients are served as before.

ODRADEK_SOAK_CLIENTS shortens the run: it is the number of idle clients, and the other counts follow it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from tests.support.loads.hostile.slow_clients import latencies_ms, p99, produce, slow_and_idle
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import build

pytestmark = pytest.mark.soak

IDLE = int(os.environ.get("ODRADEK_SOAK_CLIENTS", "5000"))
TRICKLING = max(1, IDLE // 5)
READERS = max(1, IDLE // 50)
MAX_IDLE_S = 20
LOG_BYTES = 110_000_000
READER_MEMORY_BYTES = 200 << 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, {"connections.max.idle.ms": str(MAX_IDLE_S * 1000)})) as process:
        make_topic(process, "t")
        yield process


def test_slow_and_idle_clients_cost_others_nothing(broker: OdradekBroker) -> None:
    alone, beside = slow_and_idle(broker, idle=IDLE, slow=TRICKLING, max_idle_s=MAX_IDLE_S)
    assert beside < max(2 * alone, 1.0)


def test_clients_that_never_read_their_fetch(broker: OdradekBroker) -> None:
    """Each asks for 100 MB and reads nothing."""
    with RawClient(broker.host, broker.port) as client:
        request = produce(bytes(900_000))
        for _ in range(LOG_BYTES // 900_000):
            client.call(request, 8)
    latencies_ms(broker)
    alone = p99(latencies_ms(broker))
    process = psutil.Process(broker.pid)
    before, descriptors = process.memory_info().rss, process.num_fds()
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000_000}
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=100_000_000,
        topics=[{"topic": "t", "partitions": [wanted]}],
    )
    readers = [RawClient(broker.host, broker.port) for _ in range(READERS)]
    for reader in readers:
        reader.send(fetch, 11)
    beside = p99(latencies_ms(broker))
    grown = process.memory_info().rss - before
    print(f"{READERS} readers: {grown >> 20} MB more, p99 of a produce {alone:.2f} ms, beside them {beside:.2f} ms")
    assert grown <= READER_MEMORY_BYTES
    assert beside < max(2 * alone, 1.0)
    for reader in readers:
        reader.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
