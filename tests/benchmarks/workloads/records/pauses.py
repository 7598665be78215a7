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
from typing import Final

from odradek.protocol.api import ApiKey
from tests.benchmarks.clients import librdkafka
from tests.benchmarks.comparison.costs import latency_figures
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, delete_topic, frame_of
from tests.support.wire.requests import build

MODULE: Final = "tests.benchmarks.workloads.records.pauses"
INTERVAL_S: Final = 0.002
PARTITIONS: Final = 6
RECORDS: Final = 300_000
BATCH_BYTES: Final = 16_384


def drive(side: Side) -> Figures:
    """Round trips while the load is produced."""
    topic = side.new_topic("pauses")
    create_topic(side.broker, topic, PARTITIONS)
    command = [sys.executable, "-m", MODULE, side.broker.host, str(side.broker.port)]
    prober = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert prober.stdin is not None
    assert prober.stdout is not None
    assert prober.stdout.readline() == b"ready\n"
    client = {**side.librdkafka, "batch.size": BATCH_BYTES}
    librdkafka.produce(client, topic, PARTITIONS, side.amount(RECORDS, at_least=1_000))
    round_trips, _ = prober.communicate(b"stop\n", timeout=30)
    delete_topic(side.broker, topic)
    latencies = json.loads(round_trips)
    return {**latency_figures(latencies), ("longest", "ms"): max(latencies) * 1000}


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


WORKLOADS: Final = (
    Workload(
        name="pauses",
        description=f"ApiVersions round trips while 1,000 B records are produced in {BATCH_BYTES >> 10} KB batches",
        setup=ONE_NODE,
        drive=drive,
    ),
)

if __name__ == "__main__":
    probe(sys.argv[1], int(sys.argv[2]))
