"""Describes and alters quotas of users, client ids and IP addresses.

Kafka: ConfigCommand.describeQuotaConfigs, ConfigCommand.alterQuotaConfigs, ClientQuotaEntity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.controller.admin.client_quotas import CLIENT_ID, IP, USER, MatchType
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from odradek.storage.config.config_def import ConfigError, ConfigType, parse_type

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

Entity = Mapping[str, str | None]
"""Entity type -> name; None is the default entity."""

_TITLES: Final = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_PLAIN_MIN: Final = Decimal("1e-3")
_PLAIN_END: Final = Decimal("1e7")
"""Java prints numbers from the one to the other without an exponent."""


class Quotas(NamedTuple):
    """The quotas of an entity."""

    entity: Entity
    values: Mapping[str, float]


async def describe_quotas(
    client: AdminClient, wanted: Mapping[str, tuple[MatchType, str | None]], *, strict: bool
) -> list[Quotas]:
    """The quotas of the entities that match. `strict`: of just the wanted types. Raises: CommandFailed."""
    components = [
        ComponentData(entity_type=kind, match_type=match_type, match=name)
        for kind, (match_type, name) in wanted.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    response = await client.ask(request, DescribeClientQuotasResponse)
    check(response.error_code, response.error_message, "Describing quotas")
    return [
        Quotas(
            {part.entity_type: part.entity_name for part in entry.entity},
            {found.key: found.value for found in entry.values},
        )
        for entry in response.entries or ()
    ]


async def alter_quotas(client: AdminClient, entity: Entity, added: Mapping[str, float], removed: Sequence[str]) -> None:
    """Set and remove quotas of an entity. Raises: CommandFailed."""
    ops = [
        *(OpData(key=key, value=value) for key, value in added.items()),
        *(OpData(key=key, remove=True) for key in removed),
    ]
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=parts, ops=ops)])
    for entry in (await client.ask(request, AlterClientQuotasResponse)).entries:
        check(entry.error_code, entry.error_message, f"Altering quotas of {entity_text(entity)}")


def quota_value(key: str, text: str) -> float:
    """Raises: CommandFailed if the text is no number."""
    try:
        value = parse_type(key, text, ConfigType.DOUBLE)
    except ConfigError:
        value = None
    if not isinstance(value, float) or math.isnan(value):
        raise CommandFailed(f"Cannot parse quota configuration value for {key}: {text}")
    return value


def entity_text(entity: Entity) -> str:
    """`user-principal 'u', the default client-id`, as kafka-configs prints it."""
    return ", ".join(
        f"the default {title}" if entity[kind] is None else f"{title} '{entity[kind]}'"
        for kind, title in _TITLES.items()
        if kind in entity
    )


def values_text(values: Mapping[str, float]) -> str:
    """`producer_byte_rate=1000.0, ...`."""
    return ", ".join(f"{key}={java_double(value)}" for key, value in values.items())


def java_double(value: float) -> str:
    """A number as Java prints it: 1000.0, 1.0E7. Kafka: Double.toString."""
    exact = Decimal(repr(value))
    if not exact.is_finite():
        return "NaN" if exact.is_nan() else f"{'-' if exact < 0 else ''}Infinity"
    if exact == 0 or _PLAIN_MIN <= abs(exact) < _PLAIN_END:
        text = f"{exact:f}"
        return text if "." in text else f"{text}.0"
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    return f"{'-' if exact < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


def rows_of(found: Iterable[Quotas]) -> list[dict[str, object]]:
    """The facts, for programs: the name of a default entity is None."""
    return [{"entity": dict(quotas.entity), "quotas": dict(quotas.values)} for quotas in found]
