"""Commands of a group transcript that an administrator gives: describe, list, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.timer.sliced_work import run_through
from tests.support.transcripts.group_notation import Line

if TYPE_CHECKING:
    from tests.support.transcripts.group_transcript import Command, Transcript


def describe(transcript: Transcript, line: Line) -> None:
    """describe g ..."""

    def show(response: DescribeGroupsResponse) -> None:
        for group in response.groups:
            head = f"{group.group_id or 'none'}: {ErrorCode(group.error_code).name} {group.group_state}"
            transcript.say(f"{head} type={group.protocol_type} protocol={group.protocol_data}")
            for member in group.members:
                instance = "" if member.group_instance_id is None else f" instance={member.group_instance_id}"
                transcript.say(
                    f"  {member.member_id}{instance} client={member.client_id} host={member.client_host} "
                    f"metadata={len(member.member_metadata)} bytes assignment={member.member_assignment.decode()}"
                )

    names = ["" if word == "none" else word for word in line.words]
    show(DescribeGroupsResponse(groups=[transcript.coordinator.describe_group(name) for name in names]))


def list_groups(transcript: Transcript, line: Line) -> None:
    """list [states=Stable,Empty] [types=classic]"""

    def show(response: ListGroupsResponse) -> None:
        groups = [f"{group.group_id}/{group.group_state}/{group.group_type}" for group in response.groups]
        transcript.say(" ".join([f"ListGroups {ErrorCode(response.error_code).name}", *groups]))

    request = ListGroupsRequest(
        states_filter=line.options["states"].split(",") if "states" in line.options else [],
        types_filter=line.options["types"].split(",") if "types" in line.options else [],
    )
    run_through(transcript.coordinator.list_groups(request, show))


def delete(transcript: Transcript, line: Line) -> None:
    """delete g ..."""

    def show(response: DeleteGroupsResponse) -> None:
        results = [f"{result.group_id}:{ErrorCode(result.error_code).name}" for result in response.results]
        transcript.say(" ".join(["DeleteGroups", *results]))

    delete_group = transcript.coordinator.delete_group
    results = [DeletableGroupResult(group_id=name, error_code=delete_group(name)) for name in dict.fromkeys(line.words)]
    show(DeleteGroupsResponse(results=results))


COMMANDS: dict[str, Command] = {
    "describe": describe,
    "list": list_groups,
    "delete": delete,
}
