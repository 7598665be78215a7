"""DescribeUserScramCredentials (API key 50), version 0, flexible.

Describes SCRAM credentials, never their secrets (KIP-554). Mechanisms: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    name: str = string("0+")


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0", flexible="0+"):
    users: Sequence[UserName] | None = array(UserName, "0+", nullable="0+", packed=True)


class CredentialInfo(Struct):
    mechanism: int = int8("0+")
    iterations: int = int32("0+")


class DescribeUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+")


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: Sequence[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult, "0+")
