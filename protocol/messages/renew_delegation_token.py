"""RenewDelegationToken (API key 39), versions 0-2, flexible from 2.

Extends the life of a delegation token (KIP-48).

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, byte_string, int16, int32, int64


class RenewDelegationTokenRequest(Request, key=39, versions="0-2", flexible="2+"):
    hmac: bytes = byte_string("0+")
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(Response, key=39, versions="0-2", flexible="2+"):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
