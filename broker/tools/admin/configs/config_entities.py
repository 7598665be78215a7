"""The entities and configs on the command line of `odradek configs`.

Kafka: ConfigCommand.ConfigCommandOptions, ConfigCommand.parseConfigsToBeAdded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.client_config import read_properties
from odradek.broker.tools.command.failures import CommandFailed

if TYPE_CHECKING:
    import argparse

TOPICS: Final = "topics"
BROKERS: Final = "brokers"
BROKER_LOGGERS: Final = "broker-loggers"
USERS: Final = "users"
CLIENTS: Final = "clients"
IPS: Final = "ips"
CLIENT_METRICS: Final = "client-metrics"
ENTITY_TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS, BROKER_LOGGERS, CLIENT_METRICS)
DEFAULT: Final = ""
"""The name of the default entity."""

NAME_FLAGS: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker_logger": BROKER_LOGGERS,
    "ip": IPS,
}
DEFAULT_FLAGS: Final = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}
_WITH_DEFAULTS: Final = frozenset(DEFAULT_FLAGS.values())
_OUTSIDE_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_BETWEEN_CONFIGS: Final = re.compile(f",{_OUTSIDE_BRACKETS}")
_BETWEEN_KEY_AND_VALUE: Final = re.compile(rf"\s*=\s*{_OUTSIDE_BRACKETS}")
_KEY: Final = re.compile(r"[a-zA-Z0-9._-]*")


class Entities(NamedTuple):
    """The types, and as many names or fewer. An empty name is the default entity."""

    types: Sequence[str]
    names: Sequence[str]

    @property
    def type(self) -> str:
        return self.types[0]

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None


def entities_of(options: argparse.Namespace) -> Entities:
    """Raises: CommandFailed for entities that do not go together or with the action."""
    flags = [name for name in (*NAME_FLAGS, *DEFAULT_FLAGS) if getattr(options, name)]
    if (options.entity_type or options.entity_names) and flags:
        raise CommandFailed("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    types = [*options.entity_type, *((NAME_FLAGS | DEFAULT_FLAGS)[name] for name in flags)]
    names = [*options.entity_names, *(DEFAULT if name in DEFAULT_FLAGS else getattr(options, name) for name in flags)]
    entities = Entities(types, names)
    _check_types(types)
    _check_names(entities, options.action)
    return entities


def _check_types(types: Sequence[str]) -> None:
    if repeated := [name for index, name in enumerate(types) if name in types[:index]]:
        raise CommandFailed(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    for name in types:
        if name not in ENTITY_TYPES:
            raise CommandFailed(f"Invalid entity type {name}, the entity type must be one of {', '.join(ENTITY_TYPES)}")
    if not types:
        raise CommandFailed("At least one entity type must be specified")
    if len(types) > 1 and {*types} != {USERS, CLIENTS}:
        raise CommandFailed(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def _check_names(entities: Entities, action: str) -> None:
    types, names = entities
    if len(names) > len(types):
        raise CommandFailed("More entity names specified than entity types")
    if entities.type in (BROKERS, BROKER_LOGGERS):
        for name in filter(None, names):
            if not re.fullmatch("-?[0-9]+", name):
                raise CommandFailed(
                    f"The entity name for {entities.type} must be a valid integer broker id, but it is: {name}"
                )
    if entities.type not in _WITH_DEFAULTS and DEFAULT in names:
        raise CommandFailed(f"{entities.type} have no default")
    if action == "describe" and entities.type in (BROKER_LOGGERS, CLIENT_METRICS) and not names:
        raise CommandFailed(f"an entity name must be specified with --describe of {entities.type}")
    if action == "alter" and not names:
        if entities.type in _WITH_DEFAULTS:
            raise CommandFailed(
                "an entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
        raise CommandFailed(f"an entity name must be specified with --alter of {entities.type}")
    if action == "alter" and len(names) != len(types):
        raise CommandFailed("An entity name must be specified for every entity type")


def configs_to_add(text: str | None, file: str | None) -> dict[str, str]:
    """`k1=v1,k2=[v1,v2]`, or the contents of a properties file. Raises: CommandFailed."""
    if text is not None and file is not None:
        raise CommandFailed("Only one of --add-config or --add-config-file must be specified")
    found: dict[str, str] = {}
    if file is not None:
        found = read_properties(file)
    elif text:
        for config in _without_trailing_blanks(_BETWEEN_CONFIGS.split(text)):
            pair = _BETWEEN_KEY_AND_VALUE.split(config)
            if len(pair) != 2:
                raise CommandFailed('Invalid entity config: all configs to be added must be in the format "key=val".')
            found[pair[0].strip()] = re.sub(r"[\[\]]", "", pair[1]).strip()
    for key in found:
        if not _KEY.fullmatch(key):
            raise CommandFailed(f"Invalid character found for config key: {key}")
    return found


def _without_trailing_blanks(texts: list[str]) -> list[str]:
    """As Java's String.split leaves out empty texts at the end."""
    while texts and not texts[-1]:
        texts.pop()
    return texts
