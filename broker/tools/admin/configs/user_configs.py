"""`odradek configs` for users, clients and IP addresses: their quotas and SCRAM credentials.

Kafka: ConfigCommand.describeClientQuotaAndUserScramCredentialConfigs, ConfigCommand.alterConfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.configs.config_entities import CLIENTS, DEFAULT, IPS, USERS, Entities
from odradek.broker.tools.admin.configs.config_resources import print_completed
from odradek.broker.tools.admin.configs.quota_requests import (
    alter_quotas,
    describe_quotas,
    entity_text,
    quota_value,
    rows_of,
    values_text,
)
from odradek.broker.tools.admin.security.scram_requests import MECHANISMS, alter_user, describe_users
from odradek.broker.tools.command.failures import CommandFailed
from odradek.controller.admin.client_quotas import CLIENT_ID, IP, USER, MatchType

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

QUOTA_ENTITIES: Final = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}
QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS: Final = ("connection_creation_rate",)


async def describe(client: AdminClient, out: Output, entities: Entities) -> None:
    """Print quotas, and with users alone their SCRAM credentials. Raises: CommandFailed."""
    found = await describe_quotas(client, _filter(entities), strict=True)
    out.result(
        rows_of(found),
        (f"Quota configs for {entity_text(quotas.entity)} are {values_text(quotas.values)}" for quotas in found),
    )
    if entities.type == USERS and CLIENTS not in entities.types and DEFAULT not in entities.names:
        for user, credentials in await describe_users(client, entities.names):
            if isinstance(credentials, str):
                out.warn(f"Error retrieving SCRAM credential configs for user-principal '{user}': {credentials}")
                continue
            text = ", ".join(f"{name}=iterations={iterations}" for name, iterations in credentials.items())
            out.result(
                [{"entity": {USER: user}, "scram_iterations": credentials}],
                [f"SCRAM credential configs for user-principal '{user}' are {text}"],
            )


def _filter(entities: Entities) -> dict[str, tuple[MatchType, str | None]]:
    wanted: dict[str, tuple[MatchType, str | None]] = {}
    for index, kind in enumerate(entities.types):
        name = entities.names[index] if index < len(entities.names) else None
        if name is None:
            match: tuple[MatchType, str | None] = (MatchType.SPECIFIED, None)
        else:
            match = (MatchType.DEFAULT, None) if name == DEFAULT else (MatchType.EXACT, name)
        wanted[QUOTA_ENTITIES[kind]] = match
    return wanted


async def alter(
    client: AdminClient, out: Output, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and delete quotas, or the SCRAM credentials of a user. Raises: CommandFailed."""
    keys = [*added, *deleted]
    _check_keys(entities, keys)
    if any(key in MECHANISMS for key in keys):
        await alter_user(client, entities.names[0], added, deleted)
    else:
        found = await describe_quotas(client, _filter(entities), strict=True)
        known = found[0].values if found else {}
        if unknown := [key for key in deleted if key not in known]:
            raise CommandFailed(f"Invalid config(s): {','.join(unknown)}")
        entity = {QUOTA_ENTITIES[kind]: name or None for kind, name in zip(entities.types, entities.names, strict=True)}
        await alter_quotas(client, entity, {key: quota_value(key, text) for key, text in added.items()}, deleted)
    print_completed(out, entities.type, entities.names[0])


def _check_keys(entities: Entities, keys: Sequence[str]) -> None:
    """Raises: CommandFailed for configs that the entity does not have."""
    is_user_alone = list(entities.types) == [USERS]
    quotas = IP_QUOTAS if entities.type == IPS else QUOTAS
    allowed = {*quotas, *(MECHANISMS if is_user_alone else ())}
    if unknown := [key for key in keys if key not in allowed]:
        what = "connection quota" if entities.type == IPS else "quota"
        if is_user_alone:
            what = "quota and SCRAM credential"
        kind = CLIENTS if CLIENTS in entities.types else entities.type
        raise CommandFailed(
            f"Only {what} configs can be added or deleted for '{kind}'. Unexpected config names: {', '.join(unknown)}"
        )
    scram = [key for key in keys if key in MECHANISMS]
    if scram and DEFAULT in entities.names:
        raise CommandFailed(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials."
        )
    if scram and len(scram) < len(keys):
        raise CommandFailed(f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}'.")
