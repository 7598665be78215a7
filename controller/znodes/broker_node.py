"""The registration of a broker, `/brokers/ids/<id>`. `znodes` has the rules of encoding and decoding.

Kafka: BrokerIdZNode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    json_object,
    list_in,
    str_in,
)

FIRST_REGISTRATION_WITH_RACK: Final = 3
FIRST_REGISTRATION_WITH_LISTENERS: Final = 4
FIRST_REGISTRATION_WITH_FEATURES: Final = 5

_END_POINT = re.compile(r"([^:]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


def encode_broker(info: BrokerInfo, timestamp_ms: int) -> bytes:
    """A registration. `host` and `port` are those of the first plaintext endpoint, for readers of version 1.

    Version 2 has no rack and no listener protocols, version 4 no features.
    """
    broker = info.broker
    plaintext = next((p for p in broker.end_points if p.security_protocol is SecurityProtocol.PLAINTEXT), None)
    protocols: dict[str, Json] = {p.listener_name: p.security_protocol.name for p in broker.end_points}
    node: dict[str, Json] = {}
    if info.version >= FIRST_REGISTRATION_WITH_FEATURES:
        node["features"] = {}
    if info.version >= FIRST_REGISTRATION_WITH_LISTENERS:
        node["listener_security_protocol_map"] = protocols
    node["endpoints"] = [point.connection_string for point in broker.end_points]
    if broker.rack is not None and info.version >= FIRST_REGISTRATION_WITH_RACK:
        node["rack"] = broker.rack
    node |= {
        "jmx_port": info.jmx_port,
        "port": -1 if plaintext is None else plaintext.port,
        "host": None if plaintext is None else plaintext.host,
        "version": info.version,
        "timestamp": str(timestamp_ms),
    }
    return encode(node)


def decode_broker(broker_id: int, data: bytes | None) -> BrokerInfo:
    """A registration of any version. Raises BadZnode for one without valid endpoints."""
    path = znodes.broker_id_path(broker_id)
    node = json_object(data, path)
    version = int_in(node, "version")
    if version < 1:
        raise BadZnode(f"Unsupported version of broker registration: {data!r}")
    if version == 1:
        protocol = SecurityProtocol.PLAINTEXT
        end_points: tuple[EndPoint, ...] = (
            EndPoint(str_in(node, "host"), int_in(node, "port"), protocol.name, protocol),
        )
    else:
        protocols = node.get("listener_security_protocol_map")
        names = cast("dict[str, str]", protocols) if isinstance(protocols, dict) else {}
        end_points = tuple(_end_point(str(text), names, path) for text in list_in(node, "endpoints"))
    rack = node.get("rack")
    return BrokerInfo(
        broker=Broker(broker_id, end_points, rack if isinstance(rack, str) else None),
        jmx_port=int_in(node, "jmx_port", -1),
        version=version,
    )


def _end_point(text: str, protocols: Mapping[str, str], path: str) -> EndPoint:
    match = _END_POINT.fullmatch(text)
    if match is None:
        raise BadZnode(f"{path} has the malformed endpoint {text!r}")
    listener = match[1].upper()
    try:
        return EndPoint(match[2], int(match[3]), listener, SecurityProtocol[protocols.get(listener, listener)])
    except KeyError as error:
        raise BadZnode(f"{path} has no security protocol for the listener {listener}") from error
