"""The errors of all encoders."""

from __future__ import annotations


class EncodeError(Exception):
    """The value cannot be expressed in this version of the message."""


class TooLargeError(EncodeError):
    """The message has more bytes than a frame, or than one answer may need in memory. A request can ask for that."""


class RetainedTags(Exception):
    """The message holds tagged fields that were unknown when it was decoded."""


def outside_version(label: str, version: int) -> EncodeError:
    return EncodeError(f"Attempted to write a non-default {label} at version {version}")


def wrong_uuid(label: str) -> EncodeError:
    return EncodeError(f"{label} is not a uuid of 16 bytes")
