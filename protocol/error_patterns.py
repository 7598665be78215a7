"""Errors about many names that differ in nothing but the name which their messages quote.

A request of one megabyte may name 100,000 topics that do not exist. Until the answer is encoded, an error of its own
for each would take 20 MB; here those of one pattern are one object, and the name is the request's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError

NAME: Final = "\0"
"""In place of the name. An error whose message has this character stays as it is."""

PATTERNS_MAX: Final = 256
"""Of one request. Messages with other texts that differ are not made smaller by more of them."""


class ErrorPattern(NamedTuple):
    """An error without the name that it is about."""

    code: ErrorCode
    message: str

    def about(self, name: str) -> KafkaError:
        return KafkaError(self.code, self.message.replace(NAME, name))


class ErrorPatterns:
    """Those of one request."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[ErrorPattern, ErrorPattern] = {}

    def kept(self, error: KafkaError, name: str) -> ErrorPattern | KafkaError:
        """What to keep of an error about the name until `error_about` makes it again."""
        if NAME in error.message:
            return error.as_value()
        pattern = ErrorPattern(error.code, error.message.replace(name, NAME) if name else error.message)
        known = self._known.get(pattern)
        if known is None:
            if len(self._known) >= PATTERNS_MAX:
                return error.as_value()
            known = self._known[pattern] = pattern
        return known


def error_about(name: str, kept: ErrorPattern | KafkaError) -> KafkaError:
    return kept.about(name) if isinstance(kept, ErrorPattern) else kept
