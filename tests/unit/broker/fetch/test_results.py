from __future__ import annotations

from odradek.broker.fetch.fetch_session import PartitionFetch
from odradek.broker.fetch.results import FetchParams, LogReadResult
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchDataInfo, FetchIsolation


def test_size_is_that_of_the_records_found() -> None:
    fetch = PartitionFetch("t", ZERO_UUID, 0)
    assert LogReadResult(fetch=fetch).size_in_bytes == 0
    found = FetchDataInfo(LogOffsetMetadata(0), memoryview(b"12345"))
    assert LogReadResult(fetch=fetch, fetched=found).size_in_bytes == 5


def test_a_follower_has_a_replica_id() -> None:
    for replica_id, expected in ((0, True), (7, True), (-1, False), (-2, False)):
        params = FetchParams(
            replica_id=replica_id,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=0,
            isolation=FetchIsolation.LOG_END,
            leader_only=True,
            hard_max_bytes=False,
        )
        assert params.is_from_follower is expected
