"""Every array of every request as long as one megabyte allows: the time and memory that a broker needs for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import API
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.loads.hostile.widest_requests import wide_arrays, widest_requests
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

pytestmark = pytest.mark.soak

SOON_S = 1.0
ONE_BYTES = 24 << 20
"""For one request: eight times its frame, and 16 MB."""
MOST_BYTES = 128 << 20
LONGEST_S = 3
PAUSE_S = 0.005
OTHERS_TIMEOUT_S = 30
ALL_ANSWERED_S = 120
LEFT_AFTER_S = 0.5
QUIET_S = 0.05
"""Of processor time in half a second."""
SETTINGS = {"auto.create.topics.enable": "false"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, SETTINGS)) as process:
        yield process


def test_one_megabyte_costs_little(broker: OdradekBroker) -> None:
    """Another client is answered soon, all the while, and so much memory is not used until the answer has gone."""
    process = psutil.Process(broker.pid)
    costs: dict[str, tuple[float, int]] = {}
    for name, frame in widest_requests():
        Path(f"/proc/{broker.pid}/clear_refs").write_text("5")  # the peak begins anew
        before = process.memory_info().rss
        longest_s = longest_wait_s(broker, frame)
        costs[name] = longest_s, peak_bytes(broker) - before
    slowest, largest = max(costs.items(), key=lambda c: c[1][0]), max(costs.items(), key=lambda c: c[1][1])
    print(
        f"{len(costs)} requests; slowest {slowest[0]} {slowest[1][0]:.2f} s, largest {largest[0]} {largest[1][1]:,} B"
    )
    assert len(costs) > 500
    beyond = {name: cost for name, cost in costs.items() if cost[0] >= SOON_S or cost[1] > ONE_BYTES}
    assert not beyond, beyond


@pytest.mark.parametrize(("inner", "at_least"), [(0, 100), (1, 50)])
def test_one_megabyte_of_different_elements(tmp_path: Path, inner: int, at_least: int) -> None:
    """Each to a broker of its own, so that no memory which an earlier request needed is there already. Arrays in the
    elements have `inner` elements.
    """
    costs: dict[str, tuple[float, int]] = {}
    arrays = [array for array in wide_arrays(API.values()) if not inner or array.is_nested]
    for number, array in enumerate(arrays):
        with running(OdradekBroker(tmp_path / str(number), SETTINGS)) as broker:
            one = Growth(broker.pid)
            longest_s = longest_wait_s(broker, array.frame(differ=True, inner=inner))
            costs[array.name] = longest_s, one.most
    most = sorted(costs.items(), key=lambda cost: cost[1][1], reverse=True)
    print(f"{len(costs)} arrays; MB: {', '.join(f'{name} {growth >> 20}' for name, (_, growth) in most[:20])}")
    assert len(costs) > at_least
    beyond = {name: cost for name, cost in costs.items() if cost[0] >= SOON_S or cost[1] > ONE_BYTES}
    assert not beyond, beyond


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("OffsetForLeaderEpoch v0 topics", 20),
        ("Fetch v0 topics", 20),
        ("DescribeGroups v0 groups", 8),
        ("AlterConfigs v0 resources", 8),
        ("DeleteTopics v0 topic_names", 8),
    ],
)
def test_many_at_once_cost_little_more_than_one(broker: OdradekBroker, name: str, count: int) -> None:
    """Without a limit all would be in memory as values: 20 of the first 549 MB, 8 of the others up to 514 MB."""
    frame = dict(widest_requests())[name]
    before = psutil.Process(broker.pid).memory_info().rss
    clients = [RawClient(broker.host, broker.port, timeout_s=ALL_ANSWERED_S) for _ in range(count)]
    for client in clients:
        client.send_frame(frame)
    for client in clients:
        client.receive_frame()
        client.close()
    print(f"{count} of {name}: {peak_bytes(broker) - before:,} B")
    assert peak_bytes(broker) - before < MOST_BYTES


@pytest.mark.parametrize("version", ["first", "last"])
def test_one_of_each_kind_at_once_costs_little_when_the_clients_leave(broker: OdradekBroker, version: str) -> None:
    """After half a second. What they have sent is worked on all the same: they may have closed their side only."""
    kinds: dict[str, bytes] = {}
    for name, frame in widest_requests():
        api, _, what = name.partition(" ")
        if " of b" not in what and (version == "last" or api not in kinds):
            kinds[api] = frame
    process = psutil.Process(broker.pid)
    before = process.memory_info().rss
    with ThreadPoolExecutor(len(kinds)) as pool:
        list(pool.map(lambda frame: _send_and_leave(broker, frame), kinds.values()))
    with RawClient(broker.host, broker.port, timeout_s=OTHERS_TIMEOUT_S) as other:
        busy_s = -1.0
        while sum(process.cpu_times()[:2]) - busy_s > QUIET_S:
            busy_s = sum(process.cpu_times()[:2])
            time.sleep(LEFT_AFTER_S)
            other.call(MetadataRequest(topics=[]), 9)
    print(f"{len(kinds)} kinds, {version} version: {peak_bytes(broker) - before:,} B")
    assert len(kinds) > 40
    assert peak_bytes(broker) - before < MOST_BYTES


def _send_and_leave(broker: OdradekBroker, frame: bytes) -> None:
    with RawClient(broker.host, broker.port, timeout_s=OTHERS_TIMEOUT_S) as client, suppress(ConnectionClosedError):
        client.send_frame(frame)
        time.sleep(LEFT_AFTER_S)


def longest_wait_s(broker: OdradekBroker, frame: bytes) -> float:
    """How long another client's Metadata took at most, from the frame until its answer, or until it seems to wait."""
    with (
        RawClient(broker.host, broker.port, timeout_s=OTHERS_TIMEOUT_S) as other,
        RawClient(broker.host, broker.port, timeout_s=LONGEST_S) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        answered = pool.submit(_exchange, client, frame)
        longest_s, ends = 0.0, time.monotonic() + LONGEST_S
        while not answered.done() and time.monotonic() < ends:
            started = time.monotonic()
            other.call(MetadataRequest(topics=[]), 9)
            longest_s = max(longest_s, time.monotonic() - started)
            time.sleep(PAUSE_S)
        client.close()  # a request that waits for others is given up
    return longest_s


def _exchange(client: RawClient, frame: bytes) -> None:
    with suppress(OSError, ConnectionClosedError):
        client.send_frame(frame)
        client.receive_frame()


def peak_bytes(broker: OdradekBroker) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
