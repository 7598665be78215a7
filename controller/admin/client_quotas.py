"""DescribeClientQuotas: the quotas of users, client ids and IP addresses in the metadata tree (KIP-546).

    /config/users/U              user U with any client id              {user: U}
    /config/clients/C            any user with client id C              {client-id: C}
    /config/users/U/clients/C    user U with client id C                {user: U, client-id: C}
    /config/ips/A                IP address A                           {ip: A}

The name `<default>` stands for all entities without a node of their own; it is None here.

Kafka: ZkAdminManager.describeClientQuotas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_NAMES: Final = {USER: "user", CLIENT_ID: "client", IP: "ip"}
"""The names in error messages."""

_QUOTAS: Final = ("request_percentage", "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate")
"""In the order of Apache Kafka's answers, which is that of its hash table."""
_IP_QUOTAS: Final = ("connection_creation_rate",)


class MatchType(IntEnum):
    """The names that a filter component matches."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2
    """Any name, including the default."""


class FilterComponent(NamedTuple):
    """The part of a filter for one entity type. `match` is set for `EXACT` only."""

    entity_type: str
    match_type: MatchType
    match: str | None

    def accepts(self, name: str | None) -> bool:
        if self.match_type is MatchType.SPECIFIED:
            return True
        return name == (self.match if self.match_type is MatchType.EXACT else None)


class QuotaEntry(NamedTuple):
    """An entity (name by entity type) and its quotas."""

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


async def describe_client_quotas(
    client: MetadataClient, components: Iterable[FilterComponent], *, strict: bool
) -> list[QuotaEntry]:
    """The entities with quotas that match the filter. With `strict`, an entity must have only the filter's types.

    Raises: KafkaError for an invalid filter.
    """
    wanted = _by_type(components)
    found: list[QuotaEntry] = []
    if IP not in wanted:
        found += await _entries(client, await _user_entities(client), _QUOTAS)
    if not {USER, CLIENT_ID} & wanted.keys():
        found += await _entries(client, await _entities(client, "ips", IP), _IP_QUOTAS)
    return [entry for entry in found if _is_wanted(entry.entity, wanted, strict)]


def _by_type(components: Iterable[FilterComponent]) -> dict[str, FilterComponent]:
    wanted: dict[str, FilterComponent] = {}
    for component in components:
        name = _NAMES.get(component.entity_type)
        if name is None:
            if not component.entity_type:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{component.entity_type}' not supported"
            )
        if component.entity_type in wanted:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate {name} filter component entity type")
        wanted[component.entity_type] = component
    if IP in wanted and len(wanted) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or clientId "
            "filter component.",
        )
    return wanted


def _is_wanted(entity: Mapping[str, str | None], wanted: Mapping[str, FilterComponent], strict: bool) -> bool:
    if any(component.entity_type not in entity for component in wanted.values()):
        return False
    return all(wanted[kind].accepts(name) if kind in wanted else not strict for kind, name in entity.items())


Entities = dict[str, dict[str, str | None]]
"""Entities by path below /config."""


async def _entities(client: MetadataClient, kind: str, entity_type: str) -> Entities:
    names = sorted(await client.children(znodes.entity_config_path(kind)))
    return {f"{kind}/{name}": {entity_type: _name(name)} for name in names}


async def _user_entities(client: MetadataClient) -> Entities:
    users = await _entities(client, "users", USER)
    found = users | await _entities(client, "clients", CLIENT_ID)
    for path, entity in users.items():
        for name in sorted(await client.children(znodes.entity_config_path(f"{path}/clients"))):
            found[f"{path}/clients/{name}"] = {**entity, CLIENT_ID: _name(name)}
    return found


def _name(node: str) -> str | None:
    return None if node == znodes.DEFAULT_ENTITY else znodes.desanitize(node)


async def _entries(client: MetadataClient, entities: Entities, keys: Sequence[str]) -> list[QuotaEntry]:
    entries = []
    for path, entity in entities.items():
        texts = await client.entity_config(path)
        quotas = {key: float(texts[key]) for key in keys if key in texts}
        if quotas:
            entries.append(QuotaEntry(entity, quotas))
    return entries
