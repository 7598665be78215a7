"""Requests that name many partitions: work and response take many steps, and decoding some of them too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.broker.apis.services import SMALL_REQUEST_PARTITIONS
from odradek.broker.fetch.fetch_session import PARTITIONS_A_STEP
from odradek.protocol.codec.source_writer import ELEMENTS_A_STEP
from odradek.timer.sliced_work import SlicedWork, Steps
from tests.benchmarks.loop_pauses.requests_naming import LARGE_REQUESTS, PER_TOPIC
from tests.support.in_process.in_process_broker import InProcessBroker

NAMED = 4_000
"""With so many, a Produce or a Fetch has more than 64 KiB and is decoded in steps."""

DECODING = 0.9 / ELEMENTS_A_STEP

STEPS = {
    "Produce": 1.9 / SMALL_REQUEST_PARTITIONS + DECODING,
    "Fetch without a session": 2.9 / PARTITIONS_A_STEP + DECODING,
    "DeleteRecords": 1.02,
    "AddPartitionsToTxn": 1.02,
    "WriteTxnMarkers": 1.02,
    "StopReplica of what is not there": 3,
}
"""Steps per partition: reading it, for some requests more than once, or many in one step, and writing its result.
Produce appends until a step has taken long: `ReplicaManager.append_in_steps`.
"""


@pytest.mark.parametrize("name", STEPS)
def test_no_part_of_the_work_is_done_in_one_go(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    partitions = range(PER_TOPIC, PER_TOPIC + NAMED)
    assert steps(broker, monkeypatch, name, ["not-there"], partitions) >= STEPS[name] * NAMED


@pytest.mark.parametrize("name", ["Produce", "Fetch without a session"])
def test_many_topics_of_one_partition_are_not_looked_at_in_one_go(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    topics = [f"not-there-{number}" for number in range(NAMED)]
    assert steps(broker, monkeypatch, name, topics, [0]) >= STEPS[name] * NAMED


def steps(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, name: str, topics: list[str], partitions: Sequence[int]
) -> int:
    """How many steps a request that names these partitions of each topic takes."""
    taken = 0

    def counted(work: Steps) -> Steps:
        nonlocal taken
        for wait in work:
            taken += 1
            yield wait

    submit = SlicedWork.submit
    monkeypatch.setattr(SlicedWork, "submit", lambda slices, work: submit(slices, counted(work)))
    make, version = next((make, version) for found, make, version in LARGE_REQUESTS if found == name)
    broker.finish(broker.send(make(topics, partitions), version))
    return taken
