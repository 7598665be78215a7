"""The nodes of delegation tokens: paths, and the token's value byte for byte as Apache Kafka 3.9 writes it.

Kafka: DelegationTokenInfoZNode, DelegationTokenManagerZk, DelegationTokenChangeNotificationSequenceZNode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    is_text,
    json_object,
    list_in,
    long_in,
    str_in,
)
from odradek.controller.znodes.znodes import desanitize, sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKENS: Final = "/delegation_token/tokens"
TOKEN_CHANGES: Final = "/delegation_token/token_changes"
TOKEN_CHANGE_PREFIX: Final = "token_change_"

VERSION: Final = 3
FIRST_REQUESTER_VERSION: Final = 3


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: TokenInformation) -> bytes:
    renewers: list[Json] = [sanitize(str(renewer)) for renewer in token.renewers]
    return encode(
        {
            "issueTimestamp": token.issue_ms,
            "renewers": renewers,
            "tokenRequester": sanitize(str(token.requester)),
            "tokenId": token.token_id,
            "owner": sanitize(str(token.owner)),
            "expiryTimestamp": token.expiry_ms,
            "maxTimestamp": token.max_ms,
            "version": VERSION,
        }
    )


def decode_token(data: bytes | None, path: str) -> TokenInformation:
    """Raises: BadZnode."""
    node = json_object(data, path)
    version = int_in(node, "version")
    if not 0 < version <= VERSION:
        raise BadZnode(f"{path} has version {version}, which is not supported")
    owner = _principal(str_in(node, "owner"))
    return TokenInformation(
        token_id=str_in(node, "tokenId"),
        owner=owner,
        requester=_principal(str_in(node, "tokenRequester")) if version >= FIRST_REQUESTER_VERSION else owner,
        renewers=_renewers(node),
        issue_ms=long_in(node, "issueTimestamp"),
        max_ms=long_in(node, "maxTimestamp"),
        expiry_ms=long_in(node, "expiryTimestamp"),
    )


def _renewers(node: Mapping[str, Json]) -> tuple[Principal, ...]:
    renewers = []
    for text in list_in(node, "renewers"):
        if not is_text(text):
            raise BadZnode(f"renewers has {text!r}, not a string")
        renewers.append(_principal(text))
    return tuple(renewers)


def _principal(sanitized: str) -> Principal:
    try:
        return Principal.of_text(desanitize(sanitized))
    except ValueError as error:
        raise BadZnode(str(error)) from error
