"""The list of what Odradek does not do yet. Conformance tests check both ways: everything here is refused, and nothing
else is. "Not yet" in the README lists the same.
"""

from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode

REFUSALS: dict[ApiKey, ErrorCode] = {}
"""The error with which every entity of a request is refused."""

DESCRIPTIONS: frozenset[ApiKey] = frozenset()
"""APIs whose answers are empty, because the APIs that set their contents are refused."""
