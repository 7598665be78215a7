from __future__ import annotations

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from odradek.protocol.messages.metadata import MetadataResponse


def test_every_error_code_is_found_however_deep() -> None:
    partitions = [ResponsePartitionData(error_code=code) for code in (0, 74)]
    response = AlterPartitionResponse(error_code=41, topics=[ResponseTopicData(partitions=partitions)])
    assert list(error_codes(response)) == [41, 0, 74]


def test_a_response_without_error_codes_has_none() -> None:
    assert list(error_codes(MetadataResponse())) == []


def test_elements_that_are_made_when_they_are_read_have_theirs() -> None:
    """As in the answers that this broker gives to itself."""
    results = Mapped(lambda name: DeletableGroupResult(group_id=name, error_code=ErrorCode.NOT_CONTROLLER), ["a", "b"])
    assert list(error_codes(DeleteGroupsResponse(results=results))) == [41, 41]
