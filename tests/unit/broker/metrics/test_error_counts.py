from __future__ import annotations

from collections import defaultdict

from odradek.broker.metrics.error_counts import CODES_A_STEP, Counts, counting, error_paths
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownResponse
from odradek.protocol.messages.delete_records import DeleteRecordsResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.metadata import MetadataResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchResponse
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeResponse


def count_errors(response: Response, counts: Counts) -> int:
    """The number of steps it took."""
    return sum(1 for _ in counting(type(response))(response, counts) or ())


def test_the_codes_nearest_to_the_top_count() -> None:
    assert error_paths(HeartbeatResponse) == (("error_code",),)
    assert error_paths(SaslHandshakeResponse) == (("error_code",),)
    assert error_paths(MetadataResponse) == (("topics", "error_code"),)
    assert error_paths(ProduceResponse) == (("responses", "partition_responses", "error_code"),)
    assert error_paths(AddPartitionsToTxnResponse) == (("error_code",),)
    assert error_paths(FetchResponse) == (("error_code",), ("responses", "partitions", "error_code"))
    assert error_paths(OffsetFetchResponse) == (("error_code",),)


def test_partitions_and_the_response_itself_are_added_up() -> None:
    counts: defaultdict[int, int] = defaultdict(int)
    parts = [PartitionProduceResponse(index=index, error_code=index) for index in (0, 0, 3)]
    count_errors(ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=parts)]), counts)
    assert counts == {0: 2, 3: 1}
    data = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
    count_errors(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=data)]), counts)
    assert counts == {0: 3, 3: 1, 1: 1}
    count_errors(DeleteRecordsResponse(topics=[]), counts)
    assert sum(counts.values()) == 5
    count_errors(ControlledShutdownResponse(error_code=0), counts)
    assert counts[0] == 4


def test_a_step_counts_no_more_than_so_many_codes() -> None:
    data = [PartitionData() for _ in range(10 * CODES_A_STEP)]
    in_one_topic = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=data)])
    in_many = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[one]) for one in data])
    produced = ProduceResponse(
        responses=[
            TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse()] * 5)
            for _ in range(CODES_A_STEP)
        ]
    )
    for response, codes, steps in ((in_one_topic, 5001, 10), (in_many, 5001, 10), (produced, 2500, 5)):
        counts: defaultdict[int, int] = defaultdict(int)
        assert count_errors(response, counts) == steps
        assert counts == {0: codes}
