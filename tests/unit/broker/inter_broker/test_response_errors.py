from __future__ import annotations

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.protocol.messages.alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.protocol.messages.metadata import MetadataResponse


def test_every_error_code_is_found_however_deep() -> None:
    partitions = [ResponsePartitionData(error_code=code) for code in (0, 74)]
    response = AlterPartitionResponse(error_code=41, topics=[ResponseTopicData(partitions=partitions)])
    assert list(error_codes(response)) == [41, 0, 74]


def test_a_response_without_error_codes_has_none() -> None:
    assert list(error_codes(MetadataResponse())) == []
