from __future__ import annotations

import pytest

from odradek.broker.tools.command.addresses import Address, parse_addresses
from odradek.broker.tools.command.failures import CommandFailed


def test_addresses_are_hosts_and_ports() -> None:
    assert parse_addresses("a:1, ,[::1]:65535,") == [Address("a", 1), Address("::1", 65535)]
    assert [str(address) for address in parse_addresses("a:1,[::1]:2")] == ["a:1", "[::1]:2"]


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:x", "a:65536", ", ,"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="is not host:port"):
        parse_addresses(text)
