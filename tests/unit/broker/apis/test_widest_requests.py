"""Requests whose arrays are as long as fits: no piece of work between two turns of the loop goes through all of them.

What is counted are the lines of handlers, coordinators and the controller that run in a piece; one that goes through an
array runs a line at least for each of its elements.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Response
from odradek.timer.sliced_work import SlicedWork, Steps
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker
from tests.support.loads.hostile.widest_requests import wide_arrays

FRAME_BYTES = 80_000
"""It has 8,000 elements and more."""

LINES_MAX = 7_500
"""Of the largest group of znodes that is read at once (`CONFIGS_AT_ONCE`); of 64 elements and a few immediate steps."""

COUNTED = re.compile("/(broker/apis|coordinator|controller|timer)/")

TURNS = 1_000
"""Enough for the parts of the work that do not wait for the metadata tree."""

APIS = (
    ApiKey.PRODUCE,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
)
LEFT = ("OffsetFetch v0 topics.partition_indexes", "AlterPartitionReassignments v0 topics.partitions.replicas")
"""The tree reads many znodes in one go; a list of replicas is compared as a whole."""

ARRAYS = {
    array.name: array
    for array in wide_arrays(API[key] for key in APIS)
    if (array.version == 0 and array.name not in LEFT)
    or array.name in ("ListOffsets v9 topics", "OffsetFetch v9 groups.topics", "Metadata v12 topics")
}


@cache
def is_counted(path: str) -> bool:
    return COUNTED.search(path) is not None


class Lines:
    """Counts the lines of each piece: the largest count, and the line at which a piece was too long."""

    def __init__(self) -> None:
        self.count = self.longest = 0
        self.where = ""

    def trace(self, frame: FrameType, event: str, argument: object) -> object:
        if event == "call" and not is_counted(frame.f_code.co_filename):
            return None
        if event == "line":
            self.count += 1
            self.longest = max(self.longest, self.count)
            if self.count == LINES_MAX:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return self.trace

    def next_request(self) -> None:
        self.count = self.longest = 0
        self.where = ""

    def next_piece(self) -> None:
        self.count = 0

    def in_pieces(self, work: Steps) -> Steps:
        for wait in work:
            self.next_piece()
            yield wait
        self.next_piece()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    path: Path = tmp_path_factory.mktemp("broker")
    with in_process_broker(path, {"auto.create.topics.enable": "false"}) as made:
        yield made


@pytest.fixture(scope="module")
def every_line() -> Iterator[Lines]:
    """One for all requests: work on one of them may go on beside the next one."""
    counted = Lines()
    submit, run = SlicedWork.submit, asyncio.Handle._run

    def run_alone(handle: asyncio.Handle) -> None:
        counted.next_piece()
        run(handle)
        counted.next_piece()

    def complete(connection: FakeConnection, ctx: RequestContext, response: Response | None) -> None:
        connection.answers[ctx.header.correlation_id] = response  # it is encoded in steps by a `Connection` only

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SlicedWork, "submit", lambda slices, work: submit(slices, counted.in_pieces(work)))
        patched.setattr(asyncio.Handle, "_run", run_alone)
        patched.setattr(FakeConnection, "complete", complete)
        yield counted


@pytest.fixture
def lines(every_line: Lines) -> Lines:
    every_line.next_request()
    return every_line


@pytest.mark.parametrize("name", ARRAYS)
def test_no_piece_of_the_work_goes_through_all_that_a_request_names(
    broker: InProcessBroker, lines: Lines, name: str
) -> None:
    async def turn() -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    frame = ARRAYS[name].frame(differ=True, largest_bytes=FRAME_BYTES)
    previous = sys.gettrace()
    sys.settrace(lines.trace)  # type: ignore[arg-type]
    try:
        broker.send_frame(frame)
        broker.loop.run_until_complete(turn())
    finally:
        sys.settrace(previous)
    assert lines.longest <= LINES_MAX, lines.where
