from __future__ import annotations

from types import SimpleNamespace

import pytest

from odradek.broker.faults.answers.fetch_errors import fail_fetch, partitions_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

TOPIC_ID = bytes(15) + b"\x01"
CACHE = SimpleNamespace(topic_name={TOPIC_ID: "t"}.get, topic_id={"t": TOPIC_ID}.get)


def test_the_partitions_of_a_session_are_those_of_its_fetches() -> None:
    fetches = [SimpleNamespace(topic="t", partition=1), SimpleNamespace(topic=None, partition=0)]
    session = SimpleNamespace(partitions=dict(enumerate(fetches)))
    sessions = SimpleNamespace(get={7: session}.get)
    assert partitions_of(sessions, FetchRequest(session_id=7, session_epoch=3)) == [("t", 1)]  # type: ignore[arg-type]
    assert partitions_of(sessions, FetchRequest(session_id=7, session_epoch=0)) == []  # type: ignore[arg-type]
    assert partitions_of(sessions, FetchRequest(session_id=8, session_epoch=3)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("by_id", [False, True])
def test_partitions_get_the_error_whether_the_answer_has_them_or_not(by_id: bool) -> None:
    topic = FetchableTopicResponse(
        topic="" if by_id else "t",
        topic_id=TOPIC_ID if by_id else bytes(16),
        partitions=[PartitionData(partition_index=0, records=b"records"), PartitionData(partition_index=1)],
    )
    for response in (FetchResponse(responses=[topic]), FetchResponse()):
        fail_fetch(response, ErrorCode.OFFSET_OUT_OF_RANGE, [("t", 0), ("t", 2)], CACHE, by_id=by_id)  # type: ignore[arg-type]
        (found,) = response.responses
        assert (found.topic_id == TOPIC_ID) is by_id
        failed = {part.partition_index: part for part in found.partitions if part.error_code}
        assert set(failed) == {0, 2}
        assert all((part.records, part.high_watermark) == (b"", -1) for part in failed.values())
