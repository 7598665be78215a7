"""CreateAcls, DescribeAcls and DeleteAcls with an authorizer; transcripts compare them with Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.network.connection.connection import Connection
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
}
VERSIONS = range(4)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path, SETTINGS) as made:
        yield made


def admin() -> FakeConnection:
    connection = FakeConnection()
    connection.principal = "User:admin"
    return connection


def creation(name: str = "t", **fields: object) -> AclCreation:
    values = {"resource_type": 2, "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3, **fields}
    return AclCreation(resource_name=name, **values)


def deletion(name: str | None = None, **fields: object) -> DeleteAclsFilter:
    values = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1, **fields}
    return DeleteAclsFilter(resource_name_filter=name, principal_filter=None, host_filter=None, **values)


def description(**fields: object) -> DescribeAclsRequest:
    values = {"resource_type_filter": 1, "operation": 1, "permission_type": 1, **fields}
    return DescribeAclsRequest(resource_name_filter=None, principal_filter=None, host_filter=None, **values)


def created(broker: InProcessBroker, *creations: AclCreation, version: int = 3) -> list[tuple[int, str | None]]:
    answer = broker.call(CreateAclsRequest(creations=list(creations)), version, connection=admin())
    return [(result.error_code, result.error_message) for result in answer.results]  # type: ignore[attr-defined]


def described(broker: InProcessBroker, version: int = 3, **fields: object) -> list[tuple[str, int, int]]:
    """Name, pattern type and number of entries of each pattern."""
    if version:
        fields.setdefault("pattern_type_filter", 1)
    answer = broker.call(description(**fields), version, connection=admin())
    assert answer.error_code == 0  # type: ignore[attr-defined]
    found = answer.resources  # type: ignore[attr-defined]
    return sorted((one.resource_name, one.pattern_type, len(one.acls)) for one in found)


@pytest.mark.parametrize("version", VERSIONS)
def test_acls_are_created_described_and_deleted(broker: InProcessBroker, version: int) -> None:
    assert created(broker, creation(), creation(operation=4), creation(), version=version) == [(0, "")] * 3
    if version:
        assert created(broker, creation(resource_pattern_type=4), version=version) == [(0, "")]
    prefixed = [("t", 4, 1)] if version else []
    assert described(broker, version) == [("t", 3, 2), *prefixed]
    filters = [
        deletion("t", operation=4, pattern_type_filter=3),
        deletion("t", pattern_type_filter=3),
        deletion("u", pattern_type_filter=3),
    ]
    answer = broker.call(DeleteAclsRequest(filters=filters), version, connection=admin())
    found = [[acl.operation for acl in one.matching_acls] for one in answer.filter_results]  # type: ignore[attr-defined]
    assert found == [[4], [3], []]
    assert described(broker, version) == prefixed


def test_version_0_describes_literal_patterns_only(broker: InProcessBroker) -> None:
    created(broker, creation("a"), creation("b", resource_pattern_type=4))
    assert described(broker, 0) == [("a", 3, 1)]


def test_creations_that_are_refused(broker: InProcessBroker) -> None:
    invalid = ErrorCode.INVALID_REQUEST
    cluster = "The only valid name for the CLUSTER resource is kafka-cluster"
    assert created(
        broker,
        creation("other", resource_type=4),
        creation(""),
        creation("a/b"),
        creation(operation=99),
        creation(principal="nobody"),
        creation("kafka-cluster", resource_type=4),
    ) == [
        (invalid, cluster),
        (invalid, "Invalid empty resource name"),
        (invalid, "Failed to create ACL"),
        (invalid, "Failed to create ACL"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (0, ""),
    ]


def test_an_error_is_that_of_all_bindings_of_its_pattern(broker: InProcessBroker) -> None:
    """As in Kafka, which changes the entries of a pattern together."""
    answers = created(broker, creation(), creation(principal="nobody"), creation("u"))
    assert [code for code, _ in answers] == [-1, -1, 0]
    assert described(broker) == [("u", 3, 1)]


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_codes_of_filters_answer_unknown_server_error(broker: InProcessBroker, field: str) -> None:
    assert created(broker, creation("good"), creation(**{field: 1})) == [(-1, None)] * 2
    assert described(broker) == []


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (CreateAclsRequest(creations=[creation(operation=0)]), 3),
        (CreateAclsRequest(creations=[creation(resource_pattern_type=0)]), 3),
        (DeleteAclsRequest(filters=[deletion(permission_type=0)]), 3),
        (description(resource_type_filter=0), 3),
    ],
)
def test_a_code_that_is_missing_closes_the_connection(broker: InProcessBroker, request_: Request, version: int) -> None:
    waiting = broker.send(request_, version, connection=admin())
    assert waiting.connection.close_reason is not None
    assert not waiting.is_answered


@pytest.mark.parametrize(
    "request_", [CreateAclsRequest(creations=[creation()]), DeleteAclsRequest(filters=[deletion()]), description()]
)
def test_who_may_not_is_refused(broker: InProcessBroker, request_: Request) -> None:
    created(broker, creation())
    answer = broker.call(request_, 3)
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert _codes(answer) == {code}
    assert described(broker) == [("t", 3, 1)]


def _codes(answer: Response) -> set[int]:
    parts = getattr(answer, "results", None) or getattr(answer, "filter_results", None) or [answer]
    return {part.error_code for part in parts}


def test_the_broker_itself_is_never_refused_and_no_client_passes_for_it(broker: InProcessBroker) -> None:
    """Nobody may do anything here but the admin, and yet the controller has reached its own broker."""
    assert broker.services.metadata_cache.is_alive(broker.services.broker_id)
    assert Connection.is_own_broker is False
    with pytest.raises(AttributeError):
        Connection.__new__(Connection).is_own_broker = True  # type: ignore[misc]


def test_acls_outlive_a_restart(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, SETTINGS) as broker:
        created(broker, creation(), creation("u", resource_pattern_type=4))
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert described(broker) == [("t", 3, 1), ("u", 4, 1)]
