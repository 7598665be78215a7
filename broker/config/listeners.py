"""The listeners of a broker: bound, advertised, for requests between brokers, and for the controller's requests.

They are computed from the typed values of the configuration, and checked by `config_checks.check_listeners`.

Kafka: KafkaConfig.listeners, KafkaConfig.effectiveAdvertisedBrokerListeners,
KafkaConfig.getInterBrokerListenerNameAndSecurityProtocol, KafkaConfig.getControlPlaneListenerNameAndSecurityProtocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self, cast

from odradek.broker.config.endpoint import EndPoint, parse_end_points, parse_protocol_map, parse_security_protocol
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.storage.config.config_def import ConfigError, ConfigValue


class ListenerSecurity(NamedTuple):
    """A listener's name in capitals, and its security protocol."""

    name: str
    security_protocol: SecurityProtocol


class Listeners(NamedTuple):
    """The listeners of a broker, for every purpose."""

    bound: tuple[EndPoint, ...]
    """`listeners`: the bound addresses."""
    advertised: tuple[EndPoint, ...]
    """`advertised.listeners`, else `bound`, whose port may still be 0."""
    advertise_connected_address: bool
    """True on a single broker without `advertised.listeners`: clients get the address to which they connected."""
    inter_broker: ListenerSecurity
    control_plane: ListenerSecurity | None
    """`control.plane.listener.name`"""

    @property
    def control(self) -> ListenerSecurity:
        """The listener for requests between controller and brokers: the control plane's, else the inter-broker one."""
        return self.control_plane or self.inter_broker

    @classmethod
    def of_values(cls, values: Mapping[str, ConfigValue], *, inter_broker_protocol_is_set: bool) -> Self:
        """The listeners from the typed values of all keys. Raises: ConfigError.

        `inter_broker_protocol_is_set`: `security.inter.broker.protocol` was set, possibly to its default.
        """
        protocols = parse_protocol_map(_text(values, "listener.security.protocol.map") or "")
        bound = parse_end_points(_text(values, "listeners") or "", protocols)
        text = _text(values, "advertised.listeners")
        advertised = () if text is None else parse_end_points(text, protocols, distinct_ports=False)
        if not (bound if text is None else advertised):
            raise ConfigError("There must be at least one broker advertised listener.")
        return cls(
            bound=bound,
            advertised=advertised or bound,
            advertise_connected_address=not _text(values, "zookeeper.connect") and not advertised,
            inter_broker=_inter_broker(values, protocols, protocol_is_set=inter_broker_protocol_is_set),
            control_plane=_control_plane(values, protocols),
        )


def _inter_broker(
    values: Mapping[str, ConfigValue], protocols: Mapping[str, SecurityProtocol], *, protocol_is_set: bool
) -> ListenerSecurity:
    name = _text(values, "inter.broker.listener.name")
    if name is None:
        key = "security.inter.broker.protocol"
        protocol = parse_security_protocol(_text(values, key) or "", key)
        return ListenerSecurity(protocol.name, protocol)
    if protocol_is_set:
        raise ConfigError("Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.")
    _require_name(name)
    found = protocols.get(name.upper())
    if found is None:
        raise ConfigError(
            f"Listener with name {name.upper()} defined in inter.broker.listener.name not found in "
            "listener.security.protocol.map."
        )
    return ListenerSecurity(name.upper(), found)


def _control_plane(
    values: Mapping[str, ConfigValue], protocols: Mapping[str, SecurityProtocol]
) -> ListenerSecurity | None:
    name = _text(values, "control.plane.listener.name")
    if name is None:
        return None
    _require_name(name)
    found = protocols.get(name.upper())
    if found is None:
        raise ConfigError(
            f"Listener with {name.upper()} defined in control.plane.listener.name not found in "
            "listener.security.protocol.map."
        )
    return ListenerSecurity(name.upper(), found)


def _require_name(name: str) -> None:
    if not name:
        raise ConfigError("The provided listener name is null or empty string")


def _text(values: Mapping[str, ConfigValue], name: str) -> str | None:
    return cast("str | None", values[name])
