"""The error code for a fenced producer: older clients know INVALID_PRODUCER_EPOCH only (KIP-588)."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode


def error_for_version(error: ErrorCode, version: int, first_fenced_version: int) -> ErrorCode:
    """The error as a client of `version` understands it."""
    if error == ErrorCode.PRODUCER_FENCED and version < first_fenced_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
