"""The handlers of the group protocol: a member's life, seen through every version of its requests."""

from __future__ import annotations

import pytest

from odradek.broker.apis.authorization import EVERY_OPERATION
from odradek.broker.apis.groups import join_group
from odradek.controller.model.acls import ResourceType
from odradek.protocol.api import API, ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
UNSAID = -(2**31)


@pytest.fixture(autouse=True)
def coordinator(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("__consumer_offsets"):
        broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
        assert broker.settle(lambda: broker.services.metadata_cache.contains("__consumer_offsets"))


def versions(key: ApiKey) -> range:
    return range(API[key].min_version, API[key].max_version + 1)


def join(broker: InProcessBroker, group: str, version: int = 9, member_id: str = "") -> JoinGroupResponse:
    request = build(
        ApiKey.JOIN_GROUP,
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"m"}],
    )
    response = broker.call(request, version)
    assert isinstance(response, JoinGroupResponse)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return join(broker, group, version, response.member_id)
    return response


def member_of(broker: InProcessBroker, group: str) -> JoinGroupResponse:
    """The only member of a stable group."""
    joined = join(broker, group)
    request = build(
        ApiKey.SYNC_GROUP,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": joined.member_id, "assignment": b"a"}],
    )
    assert broker.call(request, 5).assignment == b"a"  # type: ignore[attr-defined]
    return joined


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_join(broker: InProcessBroker, version: int) -> None:
    joined = join(broker, f"join{version}", version)
    assert (joined.error_code, joined.generation_id, joined.leader) == (NONE, 1, joined.member_id)
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, b"m")]
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_is_refused_anyway_makes_nothing_of_its_many_protocols(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, values: dict[str, object], code: ErrorCode
) -> None:
    monkeypatch.setattr(join_group, "listed", None)
    protocols = [{"name": f"protocol {number}", "metadata": b""} for number in range(500)]
    asked = {"group_id": "many", "session_timeout_ms": 10_000, "member_id": "", **values}
    response = broker.call(build(ApiKey.JOIN_GROUP, protocol_type="consumer", protocols=protocols, **asked), 3)
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == code


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_heartbeat(broker: InProcessBroker, version: int) -> None:
    member = member_of(broker, f"heartbeat{version}")
    for generation, error in ((1, NONE), (2, ErrorCode.ILLEGAL_GENERATION)):
        request = build(
            ApiKey.HEARTBEAT,
            group_id=f"heartbeat{version}",
            generation_id=generation,
            member_id=member.member_id,
        )
        assert broker.call(request, version).error_code == error  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leave(broker: InProcessBroker, version: int) -> None:
    member = member_of(broker, f"leave{version}")
    who: dict[str, object] = {"member_id": member.member_id}
    if version >= 3:
        who = {"members": [who]}
    request = build(ApiKey.LEAVE_GROUP, group_id=f"leave{version}", **who)
    assert broker.call(request, version).error_code == NONE  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
@pytest.mark.parametrize("asked", [True, False])
def test_describe(broker: InProcessBroker, version: int, asked: bool) -> None:
    name = f"describe{version}{asked}"
    member = member_of(broker, name)
    fields = {"include_authorized_operations": asked} if version >= 3 else {}
    request = build(ApiKey.DESCRIBE_GROUPS, groups=[name, "unknown"], **fields)
    known, unknown = broker.call(request, version).groups  # type: ignore[attr-defined]
    assert (known.group_id, known.error_code, known.group_state) == (name, NONE, "Stable")
    (described,) = known.members
    assert (described.member_id, described.client_id) == (member.member_id, "me")
    assert described.client_host == f"/{FakeConnection.client_host}"
    assert (unknown.group_state, unknown.error_code, unknown.members) == ("Dead", NONE, [])
    operations = EVERY_OPERATION[ResourceType.GROUP] if asked and version >= 3 else UNSAID
    assert (known.authorized_operations, unknown.authorized_operations) == (operations, operations)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_list(broker: InProcessBroker, version: int) -> None:
    name = f"listed{version}"
    member_of(broker, name)
    groups = broker.call(build(ApiKey.LIST_GROUPS), version).groups  # type: ignore[attr-defined]
    (found,) = [group for group in groups if group.group_id == name]
    assert (found.protocol_type, found.group_state) == ("consumer", "Stable" if version >= 4 else "")


def test_the_address_of_a_member_is_written_as_java_writes_it(broker: InProcessBroker) -> None:
    connection = FakeConnection()
    connection.client_host = "::1"
    request = build(
        ApiKey.JOIN_GROUP,
        group_id="six",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"m"}],
    )
    broker.call(request, 3, connection=connection)
    (group,) = broker.call(build(ApiKey.DESCRIBE_GROUPS, groups=["six"]), 5).groups  # type: ignore[attr-defined]
    assert [member.client_host for member in group.members] == ["/0:0:0:0:0:0:0:1"]


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_group_named_twice_is_deleted_once(broker: InProcessBroker, version: int) -> None:
    busy = f"busy{version}"
    member_of(broker, busy)
    request = build(ApiKey.DELETE_GROUPS, groups_names=[busy, "none", busy])
    results = broker.call(request, version).results  # type: ignore[attr-defined]
    assert {result.group_id: result.error_code for result in results} == {
        busy: ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 2


@pytest.mark.parametrize("key", [ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE])
def test_new_group_protocol_is_not_supported(broker: InProcessBroker, key: ApiKey) -> None:
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        response = broker.call(build(key, group_id="g"), 0)
    else:
        (response,) = broker.call(build(key, group_ids=["g"]), 0).groups  # type: ignore[attr-defined]
    assert (response.error_code, response.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)  # type: ignore[attr-defined]
