from __future__ import annotations

from odradek.broker.fetch.results import FetchParams
from odradek.storage.segment.fetch_data import FetchIsolation


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
