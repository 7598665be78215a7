from __future__ import annotations

from odradek.broker.metrics.error_counts import ErrorCounts, error_paths
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.metadata import MetadataResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchResponse
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeResponse


def test_the_codes_nearest_to_the_top_count() -> None:
    assert error_paths(HeartbeatResponse) == (("error_code",),)
    assert error_paths(SaslHandshakeResponse) == (("error_code",),)
    assert error_paths(MetadataResponse) == (("topics", "error_code"),)
    assert error_paths(ProduceResponse) == (("responses", "partition_responses", "error_code"),)
    assert error_paths(AddPartitionsToTxnResponse) == (("error_code",),)
    assert error_paths(FetchResponse) == (("error_code",), ("responses", "partitions", "error_code"))
    assert error_paths(OffsetFetchResponse) == (("error_code",),)


def test_partitions_and_the_response_itself_are_added_up() -> None:
    counts: dict[int, int] = {}
    errors = ErrorCounts()
    parts = [PartitionProduceResponse(index=index, error_code=index) for index in (0, 0, 3)]
    errors.add(ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=parts)]), counts)
    assert counts == {0: 2, 3: 1}
    data = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
    errors.add(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=data)]), counts)
    assert counts == {0: 3, 3: 1, 1: 1}
