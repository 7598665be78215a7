"""Commands of a group transcript that a member gives: join, sync, heartbeat, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.timer.sliced_work import run_through
from tests.support.transcripts.group_notation import Line, duration, nullable, protocol

if TYPE_CHECKING:
    from tests.support.transcripts.group_transcript import Command, Transcript


def join(transcript: Transcript, line: Line) -> None:
    """join m1 [group=g] [v=9] [id=..] [instance=..] [protocols=range:t,sticky:t+u] [session=10s] [rebalance=60s]"""
    client = transcript.client(line)
    context = transcript.context(line, client.name, "join")
    request = JoinGroupRequest(
        group_id=client.group,
        session_timeout_ms=duration(line.options.get("session", "10s")),
        rebalance_timeout_ms=duration(line.options.get("rebalance", "60s")),
        member_id=transcript.member_id(line, client),
        group_instance_id=client.instance,
        protocol_type=line.options.get("type", "consumer"),
        protocols=[] if client.protocols == "none" else [protocol(text) for text in client.protocols.split(",")],
        reason=line.options.get("reason"),
    )

    def show(response: JoinGroupResponse) -> None:
        error = ErrorCode(response.error_code)
        text = f"{client.name} <- JoinGroup {error.name}"
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id = ""
        if error == ErrorCode.NONE:
            client.member_id, client.generation = response.member_id, response.generation_id
            members = " ".join(member.member_id for member in response.members)
            text += f" gen={response.generation_id} protocol={response.protocol_name} leader={response.leader}"
            text += f" members=[{members}]" if members else ""
            text += " skip-assignment" if response.skip_assignment else ""
        transcript.say(f"{text} member={response.member_id or 'none'}")

    transcript.coordinator.join_group(context, request, transcript.asked(client, context.api_version, show))


def sync(transcript: Transcript, line: Line) -> None:
    """sync m1 [m1:A m2:B ...] [gen=N] [v=5] [type=..] [protocol=..]: with assignments if it leads"""
    client = transcript.client(line)
    context = transcript.context(line, client.name, "sync")
    protocol_name = client.protocols.split(",")[0].split(":")[0]
    shares = [word.split(":") for word in line.words[1:]]
    modern = context.api_version >= 5
    request = SyncGroupRequest(
        group_id=client.group,
        generation_id=int(line.options.get("gen", client.generation)),
        member_id=transcript.member_id(line, client),
        group_instance_id=client.instance,
        protocol_type=nullable(line.options.get("type", "consumer" if modern else "null")),
        protocol_name=nullable(line.options.get("protocol", protocol_name if modern else "null")),
        assignments=[
            SyncGroupRequestAssignment(member_id=transcript.id_of(name), assignment=share.encode())
            for name, share in shares
        ],
    )

    def show(response: SyncGroupResponse) -> None:
        text = f"{client.name} <- SyncGroup {ErrorCode(response.error_code).name}"
        if response.error_code == ErrorCode.NONE:
            text += f" assignment={response.assignment.decode() or 'nothing'}"
        transcript.say(text)

    transcript.coordinator.sync_group(context, request, transcript.asked(client, context.api_version, show))


def heartbeat(transcript: Transcript, line: Line) -> None:
    """heartbeat m1 [gen=N] [id=..]"""
    client = transcript.client(line)
    context = transcript.context(line, client.name, "heartbeat")
    request = HeartbeatRequest(
        group_id=client.group,
        generation_id=int(line.options.get("gen", client.generation)),
        member_id=transcript.member_id(line, client),
        group_instance_id=client.instance,
    )

    def show(response: HeartbeatResponse) -> None:
        transcript.say(f"{client.name} <- Heartbeat {ErrorCode(response.error_code).name}")

    transcript.coordinator.heartbeat(context, request, transcript.asked(client, context.api_version, show))


def leave(transcript: Transcript, line: Line) -> None:
    """leave m1 [m2 ...] [v=5] [group=g]; a word with a slash is id/instance, either may be `none`"""
    names = line.words
    first = transcript.client_named(names[0])
    group = line.options.get("group", first.group)
    context = transcript.context(line, first.name, "leave")
    identities = []
    for name in names:
        member_id, slash, instance = name.partition("/")
        if slash:
            identities.append(
                MemberIdentity(
                    member_id="" if member_id == "none" else transcript.id_of(member_id),
                    group_instance_id=None if instance == "none" else instance,
                )
            )
        else:
            client = transcript.client_named(name)
            identities.append(
                MemberIdentity(member_id=transcript.member_id(line, client), group_instance_id=client.instance)
            )
    if context.api_version < 3:
        request = LeaveGroupRequest(group_id=group, member_id=identities[0].member_id)
    else:
        request = LeaveGroupRequest(group_id="" if group == "none" else group, members=identities)

    def show(response: LeaveGroupResponse) -> None:
        members = " ".join(
            f"{member.member_id or member.group_instance_id or 'none'}:{ErrorCode(member.error_code).name}"
            for member in response.members
        )
        transcript.say(f"{first.name} <- LeaveGroup {ErrorCode(response.error_code).name} {members}".rstrip())

    run_through(
        transcript.coordinator.leave_group(context, request, transcript.asked(first, context.api_version, show))
    )


COMMANDS: dict[str, Command] = {
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "leave": leave,
}
