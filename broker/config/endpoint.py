"""Parses listeners (`NAME://host:port`) and the security protocol of each name.

Kafka: EndPoint, ListenerName, SecurityProtocol, CoreUtils.listenerListToEndPoints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from odradek.controller.model.broker_info import SecurityProtocol, format_address
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError, parse_integer, split_list

_URI: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_IPV4: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)


class EndPoint(NamedTuple):
    """One listener; `host` None binds every interface."""

    host: str | None
    port: int
    listener_name: str
    security_protocol: SecurityProtocol

    def __str__(self) -> str:
        return f"{self.listener_name}://{format_address(self.host or '', self.port)}"


def parse_csv(text: str | None) -> list[str]:
    """A comma-separated list without its empty elements."""
    return [element for element in split_list(text) if element] if text else []


def parse_csv_map(name: str, text: str) -> dict[str, str]:
    """`a:1,b:2` as a mapping. Elements are split at their last colon, so that IPv6 addresses can be keys."""
    pairs: dict[str, str] = {}
    elements = split_list(text) if text else []
    while elements and not elements[-1]:
        elements.pop()  # Java's split drops empty elements at the end
    for element in elements:
        key, colon, value = element.rpartition(":")
        if not colon:
            raise ConfigError(f"Error parsing configuration property '{name}': '{element}' is not a pair of name:value")
        pairs[java_trim(key)] = java_trim(value)
    return pairs


def parse_security_protocol(text: str, config_name: str) -> SecurityProtocol:
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise ConfigError(f"Invalid security protocol `{text}` defined in {config_name}") from None


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """`listener.security.protocol.map`, by normalised (upper-case) listener name."""
    name = "listener.security.protocol.map"
    return {
        listener.upper(): parse_security_protocol(protocol, name)
        for listener, protocol in parse_csv_map(name, text).items()
    }


def parse_end_points(
    text: str, protocols: Mapping[str, SecurityProtocol], *, distinct_ports: bool = True
) -> tuple[EndPoint, ...]:
    """`listeners` or `advertised.listeners` (which may repeat ports)."""
    end_points = tuple(_parse_end_point(entry, protocols, text) for entry in parse_csv(java_trim(text)))
    if len({end_point.listener_name for end_point in end_points}) < len(end_points):
        raise ConfigError(f"Each listener must have a different name, listeners: {text}")
    if distinct_ports:
        _check_ports(end_points, text)
    return end_points


def _parse_end_point(entry: str, protocols: Mapping[str, SecurityProtocol], text: str) -> EndPoint:
    def refused(reason: str) -> ConfigError:
        return ConfigError(f"Error creating broker listeners from '{text}': {reason}")

    match = _URI.fullmatch(entry)
    if match is None:
        raise refused(f"Unable to parse {entry} to a broker endpoint")
    listener_name, port = match[1].upper(), parse_integer(match[3])
    protocol = protocols.get(listener_name)
    if protocol is None:
        raise refused(f"No security protocol defined for listener {listener_name}")
    if port is None or not -(2**31) <= port < 2**31:
        raise refused(f'For input string: "{match[3]}"')
    return EndPoint(match[2] or None, port, listener_name, protocol)


def _check_ports(end_points: tuple[EndPoint, ...], text: str) -> None:
    """One port may serve two listeners only if one is bound to an IPv4 and the other to an IPv6 address (KIP-797)."""
    by_port: dict[int, list[EndPoint]] = {}
    for end_point in end_points:
        if end_point.port != 0:
            by_port.setdefault(end_point.port, []).append(end_point)
    for port, same in by_port.items():
        if len(same) == 1:
            continue
        versions = sorted(_ip_version(end_point.host) for end_point in same)
        if versions.count(0) > 1:
            raise ConfigError(f"Each listener must have a different port, listeners: {text}")
        if len(versions) > 2:
            raise ConfigError(
                "Each listener must have a different port unless exactly one listener has an IPv4 address and the "
                f"other IPv6 address, listeners: {text}, port: {port}"
            )
        if versions != [4, 6]:
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                f"listeners: {text}, port: {port}"
            )


def _ip_version(host: str | None) -> int:
    """4, 6, or 0 for a name or the wildcard."""
    if host is None:
        return 0
    if _IPV4.fullmatch(host):
        return 4 if all(int(byte) < 256 for byte in host.split(".")) else 0
    return 6 if ":" in host else 0
