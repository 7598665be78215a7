"""AlterUserScramCredentials (API key 51), version 0, flexible.

Changes and deletes SCRAM credentials (KIP-554). The password arrives salted.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, byte_string, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")


class ScramCredentialUpsertion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: bytes = byte_string("0+")
    salted_password: bytes = byte_string("0+")


class AlterUserScramCredentialsRequest(Request, key=51, versions="0", flexible="0+"):
    deletions: Sequence[ScramCredentialDeletion] = array(ScramCredentialDeletion, "0+", packed=True)
    upsertions: Sequence[ScramCredentialUpsertion] = array(ScramCredentialUpsertion, "0+", packed=True)


class AlterUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class AlterUserScramCredentialsResponse(Response, key=51, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    results: Sequence[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult, "0+")
