"""The clients that a quota is set for: a user, a client id, both, or the default of one of them.

Kafka: ClientQuotaEntity, ClientQuotaManager.KafkaQuotaEntity, ClientQuotaType.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from odradek.controller.znodes import znodes


class ClientQuotaType(Enum):
    """What a quota limits. The values are Kafka's names in metrics."""

    PRODUCE = "Produce"
    """Bytes of Produce requests per second."""
    FETCH = "Fetch"
    """Bytes of Fetch responses per second."""
    REQUEST = "Request"
    """Time of the event loop, in percent of all its time."""
    CONTROLLER_MUTATION = "ControllerMutation"
    """Partitions created and deleted per second."""


class ConfigEntityType(Enum):
    USER = "user"
    CLIENT_ID = "client-id"
    DEFAULT_USER = "default user"
    DEFAULT_CLIENT_ID = "default client-id"


class ConfigEntity(NamedTuple):
    """`name` is the name of the user or the client id, and `<default>` for a default."""

    entity_type: ConfigEntityType
    name: str

    def __str__(self) -> str:
        is_default = self.entity_type in (ConfigEntityType.DEFAULT_USER, ConfigEntityType.DEFAULT_CLIENT_ID)
        return self.entity_type.value if is_default else f"{self.entity_type.value} {self.name}"


class ClientQuotaEntity(NamedTuple):
    """At least one of both is set."""

    user: ConfigEntity | None
    client_id: ConfigEntity | None

    def __str__(self) -> str:
        return " ".join(str(entity) for entity in self if entity is not None)


def client_quota_entity(sanitized_user: str | None, sanitized_client_id: str | None) -> ClientQuotaEntity:
    """The entity of a node below `/config`, whose names are sanitized."""
    return ClientQuotaEntity(
        _entity(sanitized_user, ConfigEntityType.USER, ConfigEntityType.DEFAULT_USER),
        _entity(sanitized_client_id, ConfigEntityType.CLIENT_ID, ConfigEntityType.DEFAULT_CLIENT_ID),
    )


def _entity(sanitized: str | None, named: ConfigEntityType, default: ConfigEntityType) -> ConfigEntity | None:
    if sanitized is None:
        return None
    if sanitized == znodes.DEFAULT_ENTITY:
        return ConfigEntity(default, znodes.DEFAULT_ENTITY)
    return ConfigEntity(named, znodes.desanitize(sanitized))
