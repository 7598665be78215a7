"""Addresses of brokers on the command line."""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.tools.command.failures import CommandFailed


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> list[Address]:
    """`host:port,host:port`; an IPv6 address in brackets. Empty ones count for nothing. Raises: CommandFailed.

    Kafka: ClientUtils.parseAndValidateAddresses.
    """
    addresses = []
    for address in filter(None, map(str.strip, text.split(","))):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise CommandFailed(f"--bootstrap-server: {address!r} is not host:port")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise CommandFailed(f"--bootstrap-server: {text!r} is not host:port")
    return addresses
