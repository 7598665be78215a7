"""The error that ends a command, and the texts of errors that brokers answer."""

from __future__ import annotations

from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode


class CommandFailed(Exception):
    """Ends a command with exit status 1. The message is printed on stderr."""


class Refused(CommandFailed):
    """A broker has answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def check(code: int, message: str | None, what: str) -> None:
    """Raises: Refused for an error."""
    if code != ErrorCode.NONE:
        raise Refused(code, f"{what}: {error_text(code, message)}")


def error_text(code: int, message: str | None = None) -> str:
    """The broker's message of an error, else the default message of its code."""
    return message or DEFAULT_MESSAGES[ErrorCode.for_code(code)]
