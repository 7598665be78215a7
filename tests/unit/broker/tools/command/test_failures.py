from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode


def test_an_error_has_the_text_of_the_broker_or_of_the_protocol() -> None:
    check(0, None, "It")
    with pytest.raises(CommandFailed, match="It: so there"):
        check(3, "so there", "It")
    with pytest.raises(CommandFailed, match=r"^It: This server does not host this topic-partition\.$"):
        check(3, None, "It")


def test_a_code_of_a_later_version() -> None:
    assert error_text(9999) == DEFAULT_MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR]
