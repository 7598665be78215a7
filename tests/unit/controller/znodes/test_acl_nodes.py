"""The bytes are those that Apache Kafka 3.9 writes."""

from __future__ import annotations

import pytest

from odradek.controller.model.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.controller.znodes.acl_nodes import (
    CHANGES,
    PATHS,
    acl_path,
    change_path,
    decode_acls,
    decode_change,
    encode_acls,
    encode_change,
    resource_type_of,
)
from odradek.controller.znodes.znode_json import BadZnode

ENTRY = AccessControlEntry("User:al:ice", "*", AclOperation.DESCRIBE_CONFIGS, AclPermissionType.ALLOW)
DATA = (
    b'{"acls":[{"principal":"User:al:ice","permissionType":"Allow","host":"*","operation":"DescribeConfigs"}],'
    b'"version":1}'
)
LITERAL = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "t:1", PatternType.LITERAL)
PREFIXED = ResourcePattern(ResourceType.GROUP, "ä", PatternType.PREFIXED)
PREFIXED_CHANGE = '{"version":1,"resourceType":"GROUP","name":"ä","patternType":"PREFIXED"}'.encode()


def test_entries() -> None:
    assert encode_acls([ENTRY]) == DATA
    assert decode_acls(DATA, "/p") == {ENTRY}


@pytest.mark.parametrize("data", [None, b"", b"junk", b"null"])
def test_a_node_that_is_not_json_has_no_entries(data: bytes | None) -> None:
    assert decode_acls(data, "/p") == frozenset()


def test_names_in_any_case_and_unknown_ones() -> None:
    data = DATA.replace(b"Allow", b"ALLOW").replace(b"DescribeConfigs", b"Fly")
    assert decode_acls(data, "/p") == {ENTRY._replace(operation=AclOperation.UNKNOWN)}


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        DATA.replace(b":1}", b":2}"),
        DATA.replace(b"User:al:ice", b"alice"),
        DATA.replace(b'"*"', b"7"),
        b'{"version":1}',
        b'{"version":1,"acls":[1]}',
    ],
)
def test_malformed_entries_are_an_error(data: bytes) -> None:
    with pytest.raises(BadZnode):
        decode_acls(data, "/p")


def test_paths() -> None:
    assert acl_path(LITERAL) == "/kafka-acl/TransactionalId/t:1"
    assert acl_path(PREFIXED) == "/kafka-acl-extended/prefixed/Group/ä"
    assert change_path(LITERAL) == "/kafka-acl-changes/acl_changes_"
    assert change_path(PREFIXED) == "/kafka-acl-extended-changes/acl_changes_"
    assert "/kafka-acl/DelegationToken" in PATHS
    assert "/kafka-acl-extended/prefixed/User" in PATHS
    assert len(PATHS) == 16
    assert [resource_type_of(name) for name in ("Topic", "CLUSTER", "Any", "x")] == [2, 4, 0, 0]


def test_changes() -> None:
    assert encode_change(LITERAL) == b"TRANSACTIONAL_ID:t:1"
    assert encode_change(PREFIXED) == PREFIXED_CHANGE
    for pattern in (LITERAL, PREFIXED):
        assert decode_change(encode_change(pattern), CHANGES[pattern.pattern_type]) == pattern


@pytest.mark.parametrize(
    ("data", "pattern_type"),
    [
        (None, PatternType.LITERAL),
        (b"TOPIC", PatternType.LITERAL),
        (b"SONG:x", PatternType.LITERAL),
        (b"TOPIC:", PatternType.LITERAL),
        (b"junk", PatternType.PREFIXED),
        (PREFIXED_CHANGE.replace(b":1,", b":2,"), PatternType.PREFIXED),
        (PREFIXED_CHANGE.replace(b"PREFIXED", b"MATCH"), PatternType.PREFIXED),
    ],
)
def test_malformed_changes_are_an_error(data: bytes | None, pattern_type: PatternType) -> None:
    with pytest.raises(BadZnode):
        decode_change(data, CHANGES[pattern_type])
