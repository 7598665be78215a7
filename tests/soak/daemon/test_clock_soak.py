"""The wall clock jumps by hours and by years, goes back every second, and nothing ends early or waits for ever.

Sessions, time-outs and deletions go by the monotonic clock; times in records may be any. ODRADEK_SOAK_JUMPS shortens
the run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.soak.daemon.jumping_daemon import JumpingBroker
from tests.support.admin import Admin
from tests.support.loads.group_member import Member, await_shares, partitions_of
from tests.support.loads.numbered_load import PARTITIONS, Load, check_complete
from tests.support.processes.odradek_process import running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.soak

JUMPS = int(os.environ.get("ODRADEK_SOAK_JUMPS", "100"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
STEPS_BACK = 30
BUSY_CPU_SHARE = 0.9
LONGEST_TIMEOUTS = (2**31 - 1, 2**31 - 2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[JumpingBroker]:
    with running(JumpingBroker(tmp_path, {"log.segment.bytes": "200000", "log.roll.jitter.ms": "0"})) as process:
        yield process


def test_the_clock_is_set_while_a_group_reads(broker: JumpingBroker) -> None:
    print(f"seed {SEED}, {JUMPS} jumps")
    rng = random.Random(SEED)
    topic = Admin(broker.bootstrap).create_topic("load", PARTITIONS)
    load = Load(broker.bootstrap, topic, idempotent=True, pause_s=0.005)
    process = psutil.Process(broker.pid)
    cpu = process.cpu_times()
    started = time.monotonic()
    with Member(broker.bootstrap, "readers", [topic]) as one, Member(broker.bootstrap, "readers", [topic]) as two:
        await_shares([one, two], partitions_of({topic: PARTITIONS}), [1, 2])
        rebalances = len(one.assignments) + len(two.assignments)
        offsets = [rng.choice((-10 * YEAR_MS, -HOUR_MS, -1000, 0, 1000, HOUR_MS, 10 * YEAR_MS)) for _ in range(JUMPS)]
        offsets += [-1000 * step for step in range(STEPS_BACK)]
        for offset_ms in offsets:
            broker.jump(offset_ms)
            written, read = load.total, len(one.values) + len(two.values)
            eventually(lambda written=written: load.total > written)  # type: ignore[misc]
            eventually(lambda read=read: len(one.values) + len(two.values) > read)  # type: ignore[misc]
            time.sleep(1 if offset_ms < 0 and -offset_ms <= 1000 * STEPS_BACK else rng.uniform(0, 0.2))
        broker.jump(0)
        load.finish()
        assert len(one.assignments) + len(two.assignments) == rebalances, "a session ended although nobody was late"
        assert not one.errors
        assert not two.errors
        eventually(lambda: len(one.values) + len(two.values), accept=lambda count: count >= load.total)
    used = process.cpu_times()
    share = (used.user + used.system - cpu.user - cpu.system) / (time.monotonic() - started)
    print(f"{len(offsets)} settings of the clock, {load.total} records, {share:.0%} of a core")
    assert share < BUSY_CPU_SHARE
    check_complete(load, broker.bootstrap)
    broker.stop()
    broker.start()  # time indexes and segments of any time are opened again
    check_complete(load, broker.bootstrap)


def test_the_longest_time_outs(broker: JumpingBroker) -> None:
    """What waits for 25 days waits, and does not end at once because a sum has overflowed."""
    topic = Admin(broker.bootstrap).create_topic("quiet", 1)
    for timeout_ms in LONGEST_TIMEOUTS:
        with RawClient(broker.host, broker.port, timeout_s=1) as client:
            wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
            fetch = build(
                ApiKey.FETCH,
                replica_id=-1,
                max_wait_ms=timeout_ms,
                min_bytes=1,
                max_bytes=1000,
                topics=[{"topic": topic, "partitions": [wanted]}],
            )
            with pytest.raises(TimeoutError):
                client.call(fetch, 11)
        with RawClient(broker.host, broker.port) as client:
            made = client.call(
                build(
                    ApiKey.CREATE_TOPICS,
                    topics=[{"name": f"made-{timeout_ms}", "num_partitions": 1, "replication_factor": 1}],
                    timeout_ms=timeout_ms,
                ),
                5,
            )
            assert made.topics[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
