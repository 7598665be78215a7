"""Error responses of the group protocol, the errors of failed appends, and the shape of responses by version.

JoinGroup: "no protocol" is "" up to version 6 and null since version 7; `skip_assignment` exists since version 9.
LeaveGroup: up to version 2 there is one error, the top-level one or else that of the only member.

Kafka: JoinGroupResult, SyncGroupResult, LeaveGroupResponse.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1

_E = ErrorCode

OFFSET_APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    # From a failed verification of a transaction; clients retry this error without looking for the coordinator again.
    _E.NETWORK_EXCEPTION: _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.MESSAGE_TOO_LARGE: _E.INVALID_COMMIT_OFFSET_SIZE,
    _E.RECORD_LIST_TOO_LARGE: _E.INVALID_COMMIT_OFFSET_SIZE,
    _E.INVALID_FETCH_SIZE: _E.INVALID_COMMIT_OFFSET_SIZE,
}
"""The error for the client when an append of offsets failed; other errors are passed on.

Kafka: GroupMetadataManager.maybeConvertOffsetCommitError.
"""

GROUP_APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.REQUEST_TIMED_OUT: _E.REBALANCE_IN_PROGRESS,
    _E.MESSAGE_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.RECORD_LIST_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.INVALID_FETCH_SIZE: _E.UNKNOWN_SERVER_ERROR,
}
"""The same for an append of the group's metadata."""


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error,
        generation_id=NO_GENERATION,
        protocol_type=None,
        protocol_name="",
        leader="",
        member_id=member_id,
        members=[],
    )


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, protocol_type=None, protocol_name=None, assignment=b"")


def join_responder(respond: Respond[JoinGroupResponse], version: int) -> Respond[JoinGroupResponse]:
    """Wraps `respond` so that it sends the response in the shape of the request's version."""
    if version < 7:
        return respond

    def respond_with_null_protocol(response: JoinGroupResponse) -> None:
        if response.protocol_name == "":
            response.protocol_name = None
        respond(response)

    return respond_with_null_protocol


def shape_leave_group(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    """Up to version 2 a member's error is the response's error."""
    if version >= 3:
        return response
    error = response.error_code
    if error == ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    return LeaveGroupResponse(error_code=error)
