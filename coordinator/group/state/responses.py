"""Answers of the group protocol, in the shape Kafka gives them when something went wrong.

Versions: JoinGroup names no protocol with "" up to version 6 and with null from 7 on; it can say `skip_assignment`
from 9 on. LeaveGroup has one error up to version 2: the top-level one, else that of its single member.
"""

from __future__ import annotations

from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1


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
    """Shape every answer to one JoinGroup for the version it was asked in."""
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
