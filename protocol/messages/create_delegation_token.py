"""CreateDelegationToken (API key 38), versions 0-3, flexible from 2.

Issues a delegation token (KIP-48).

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
v3   a token for another owner; owner and requester in the response (KIP-373)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, byte_string, int16, int32, int64, string


class CreatableRenewers(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


class CreateDelegationTokenRequest(Request, key=38, versions="0-3", flexible="2+"):
    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers, "0+")
    max_lifetime_ms: int = int64("0+")


class CreateDelegationTokenResponse(Response, key=38, versions="0-3", flexible="2+"):
    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = byte_string("0+")
    throttle_time_ms: int = int32("0+")
