from __future__ import annotations

import json

import pytest

from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.controller.znodes.delegation_token_nodes import decode_token, encode_token, token_path
from odradek.controller.znodes.znode_json import BadZnode

REQUESTER = Principal("User", "req")
WRITTEN_BY_APACHE = (
    b'{"issueTimestamp":1,"renewers":["User%3Areq","User%3ACN%3Dx%2CO%3Dy"],"tokenRequester":"User%3Areq",'
    b'"tokenId":"abcDEF-_12345","owner":"User%3Aowner%20%C3%A9%2A%7E%20%2Bb","expiryTimestamp":2,"maxTimestamp":3,'
    b'"version":3}'
)
"""By DelegationTokenInfoZNode.encode of Apache Kafka 3.9.1."""
TOKEN = TokenInformation(
    "abcDEF-_12345",
    Principal("User", "owner é*~ +b"),
    REQUESTER,
    (REQUESTER, Principal("User", "CN=x,O=y")),
    issue_ms=1,
    max_ms=3,
    expiry_ms=2,
)


def test_a_token_has_the_bytes_of_apache() -> None:
    assert encode_token(TOKEN) == WRITTEN_BY_APACHE
    assert decode_token(WRITTEN_BY_APACHE, token_path("t")) == TOKEN


def test_before_version_3_the_owner_is_the_requester() -> None:
    node = json.loads(WRITTEN_BY_APACHE)
    node["version"] = 2
    assert decode_token(json.dumps(node).encode(), token_path("t")) == TOKEN._replace(requester=TOKEN.owner)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 0),
        ("version", 4),
        ("owner", "alice"),
        ("owner", 5),
        ("renewers", ["User:a", 7]),
        ("renewers", "User:a"),
        ("tokenRequester", None),
        ("tokenId", 1),
        ("maxTimestamp", "3"),
    ],
)
def test_values_that_apache_cannot_read_are_refused(key: str, value: object) -> None:
    node = json.loads(WRITTEN_BY_APACHE)
    node[key] = value
    with pytest.raises(BadZnode):
        decode_token(json.dumps(node).encode(), token_path("t"))


@pytest.mark.parametrize("data", [None, b"", b"junk", b"[]"])
def test_no_object_is_no_token(data: bytes | None) -> None:
    with pytest.raises(BadZnode):
        decode_token(data, token_path("t"))
