"""What Apache Kafka answers to the requests of ACLs with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.broker import Broker
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

LITERAL, PREFIXED = 3, 4
CODES = ("resource_type", "resource_pattern_type", "operation", "permission_type")


@pytest.fixture(scope="module")
def broker(make_broker: Callable[..., Broker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Takes the place of the broker that other tests share."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS;User:b",
    }
    process = make_broker(tmp_path_factory.mktemp("broker-acls"), settings)
    process.start()  # type: ignore[attr-defined]
    yield process
    process.close()  # type: ignore[attr-defined]


def creation(name: str, **fields: object) -> dict[str, object]:
    new = {"resource_type": 2, "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
    return {**new, "resource_name": name, **fields}


def asked(name: str | None, pattern_type: int | None = 1, **fields: object) -> dict[str, object]:
    pattern = {} if pattern_type is None else {"pattern_type_filter": pattern_type}
    anything = {"resource_type_filter": 1, "principal_filter": None, "host_filter": None, "operation": 1}
    return {**anything, **pattern, "resource_name_filter": name, "permission_type": 1, **fields}


def create(*creations: dict[str, object]) -> Request:
    return build(ApiKey.CREATE_ACLS, creations=list(creations))


def describe(name: str | None, pattern_type: int | None = 1, **fields: object) -> Request:
    return build(ApiKey.DESCRIBE_ACLS, **asked(name, pattern_type, **fields))


def delete(*filters: dict[str, object]) -> Request:
    return build(ApiKey.DELETE_ACLS, filters=list(filters))


def test_acls_in_all_versions(transcript: Transcript) -> None:
    t = transcript
    for version in range(4):
        name = t.name(f"topic{version}")
        kind = None if version == 0 else 1
        t.call(f"create v{version}", create(creation(name)), version)
        t.call(f"create again v{version}", create(creation(name)), version)
        t.call(f"describe v{version}", describe(name, kind), version)
        t.call(f"delete v{version}", delete(asked(name, kind), asked(name, kind), asked("none", kind)), version)
        t.call(f"gone v{version}", describe(name, kind), version)


def test_patterns_and_filters(transcript: Transcript) -> None:
    t = transcript
    name = t.name("topic")
    t.call("create prefixed", create(creation(name, resource_pattern_type=PREFIXED)), 3)
    for label, kind in (("any", 1), ("match", 2), ("literal", LITERAL), ("prefixed", PREFIXED), ("none", 9)):
        t.call(f"describe {label}", describe(name, kind), 3)
        t.call(f"describe longer {label}", describe(f"{name}x", kind, resource_type_filter=2), 3)
    t.call("describe in version 0", describe(name, None), 0)
    t.call("another type", describe(name, resource_type_filter=3), 3)
    t.call("another principal", describe(name, principal_filter="User:b"), 3)
    t.call("the host", describe(name, host_filter="*"), 3)
    t.call("another operation", describe(name, operation=4), 3)
    t.call("delete denying", delete(asked(name, permission_type=2)), 3)
    t.call("delete by match", delete(asked(f"{name}x", 2, resource_type_filter=2)), 3)


def test_what_is_refused(transcript: Transcript) -> None:
    t = transcript
    name = t.name("topic")
    t.call("cluster of another name", create(creation(name, resource_type=4)), 3)
    t.call("empty name", create(creation("")), 3)
    t.call("slash", create(creation("a/b")), 3)
    t.call("dots", create(creation("..")), 3)
    t.call("principal without a type", create(creation(name, principal="a")), 3)
    t.call("one of two without a type", create(creation(name), creation(name, principal="a")), 3)
    t.call("no principal", create(creation(name, principal="")), 3)
    t.call("operation of another type", create(creation(name, operation=9)), 3)
    t.call("clean", delete(asked(name)), 3)
    for field in CODES:
        for code in (0, 1, 2, 99):
            if (field, code) not in (("permission_type", 2), ("operation", 2), ("resource_type", 2)):
                t.call(f"{field} {code}", create(creation(name, **{field: code})), 3)
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        for code in (0, 99):
            t.call(f"describe {field} {code}", build(ApiKey.DESCRIBE_ACLS, **{**asked(name), field: code}), 3)
            t.call(f"delete {field} {code}", delete({**asked(name), field: code}), 3)
    t.call("nothing to create", create(), 3)
    t.call("nothing to delete", delete(), 3)
