"""How long a broker under load makes other clients wait: ApiVersions round trips of one process while another produces.

It is measured at the client, so it holds for both: a pause of Odradek's loop, or of Apache's collector, is a slow
answer. The other process shares the machine's cores with the load; both brokers are probed alike.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

from odradek.protocol.api import ApiKey
from tests.benchmarks.beside_apache.produce import fill
from tests.benchmarks.contenders import Contender, Contenders, create_topic, frame_of
from tests.benchmarks.measure import Table, percentile
from tests.support.wire.requests import build

MODULE = "tests.benchmarks.beside_apache.pauses"
INTERVAL_S = 0.002
PARTITIONS = 6
LOAD_BYTES = 600_000_000
BATCH_BYTES = 16_384


def run(contenders: Contenders) -> None:
    table = Table(
        f"ApiVersions round trips while {LOAD_BYTES / 1e6:.0f} MB are produced in {BATCH_BYTES >> 10} KB batches"
    )
    with contenders.both("pauses") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, "pauses", PARTITIONS)
        fill(apache, "pauses", PARTITIONS, LOAD_BYTES // 2, BATCH_BYTES)
        ours, theirs = under_load(odradek), under_load(apache)
    for share, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "longest")):
        table.row(name, "ms", percentile(ours, share) * 1000, percentile(theirs, share) * 1000)
    table.row("round trips", "count", len(ours), len(theirs))


def under_load(broker: Contender) -> list[float]:
    """Round trips in seconds, sorted."""
    command = [sys.executable, "-m", MODULE, broker.host, str(broker.port)]
    prober = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert prober.stdin is not None
    assert prober.stdout is not None
    assert prober.stdout.readline() == b"ready\n"
    fill(broker, "pauses", PARTITIONS, LOAD_BYTES, BATCH_BYTES)
    round_trips, _ = prober.communicate(b"stop\n", timeout=30)
    return sorted(json.loads(round_trips))


def probe(host: str, port: int) -> None:
    """The other process: ask every 2 ms until a line comes in; then print how long each answer took."""
    import select

    frame = frame_of(build(ApiKey.API_VERSIONS), 0)
    round_trips = []
    with socket.create_connection((host, port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], INTERVAL_S)[0]:
            started = time.perf_counter()
            client.sendall(frame)
            size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
            client.recv(size, socket.MSG_WAITALL)
            round_trips.append(time.perf_counter() - started)
    print(json.dumps(round_trips))


if __name__ == "__main__":
    probe(sys.argv[1], int(sys.argv[2]))
