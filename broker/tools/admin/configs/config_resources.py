"""Describes and alters configs of topics, brokers and loggers.

A broker's configs are altered one by one; kafka-configs 3.9 sends all dynamic configs of a broker again, so that a
sensitive config must be repeated there.

Kafka: ConfigCommand.describeResourceConfig, ConfigCommand.alterConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.configs.config_entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    DEFAULT,
    TOPICS,
    Entities,
)
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.controller.model.config_codes import AlterOperation, ConfigSource, ResourceType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

RESOURCE_TYPES: Final = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
}
SOURCES: Final = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
}
"""The numbers of DescribeConfigs, with the names of the admin client. Kafka: ConfigEntry.ConfigSource."""

_DYNAMIC_CLIENT_METRICS: Final = 7
_TOPICS_PER_REQUEST: Final = 500
Entries = list[DescribeConfigsResourceResult]


async def describe(client: AdminClient, out: Output, entities: Entities, *, with_all: bool) -> None:
    """Print the configs of one entity or of all. Raises: CommandFailed."""
    kind = entities.type
    names = list(entities.names)
    if not names and kind == TOPICS:
        names = sorted(topic.name or "" for topic in (await client.metadata(None)).topics)
    elif not names:
        names = [*map(str, await client.broker_ids()), DEFAULT]
    step = _TOPICS_PER_REQUEST if kind == TOPICS else 1
    for begin in range(0, len(names), step):
        batch = names[begin : begin + step]
        found = await _configs(client, kind, batch)
        for name in batch:
            entries = _selected(found[name], kind, name, with_all=with_all)
            out.table(_rows(kind, name, entries), _lines(kind, name, entries, with_all=with_all))


async def alter(
    client: AdminClient, out: Output, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and delete configs of an entity. Raises: CommandFailed."""
    kind, name = entities.type, entities.names[0]
    if kind != BROKER_LOGGERS:  # there may be loggers that are not described, and the broker refuses unknown ones
        entries = _selected((await _configs(client, kind, [name]))[name], kind, name, with_all=False)
        known = {entry.name for entry in entries}
        if unknown := [key for key in deleted if key not in known]:
            raise CommandFailed(f"Invalid config(s): {','.join(unknown)}")
    configs = [
        *(AlterableConfig(name=key, config_operation=AlterOperation.SET, value=value) for key, value in added.items()),
        *(AlterableConfig(name=key, config_operation=AlterOperation.DELETE, value="") for key in deleted),
    ]
    resource = AlterConfigsResource(resource_type=RESOURCE_TYPES[kind], resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    if _is_of_one_broker(kind, name):
        response = await client.ask_broker(int(name), request, IncrementalAlterConfigsResponse)
    else:
        response = await client.ask(request, IncrementalAlterConfigsResponse)
    for result in response.responses:
        check(result.error_code, result.error_message, f"Error while altering configs of {kind} {name}".rstrip())
    print_completed(out, kind, name)


def print_completed(out: Output, kind: str, name: str) -> None:
    """The line about configs that were altered."""
    line = f"Completed updating config for {kind[:-1]} {name}."
    if name == DEFAULT:
        line = f"Completed updating default config for {kind} in the cluster."
    out.result([{"entity_type": kind, "entity_name": name}], [line])


def _is_of_one_broker(kind: str, name: str) -> bool:
    """Whether only the broker itself can describe the configs."""
    return kind in (BROKERS, BROKER_LOGGERS) and name != DEFAULT


async def _configs(client: AdminClient, kind: str, names: Sequence[str]) -> dict[str, Entries]:
    resources = [
        DescribeConfigsResource(resource_type=RESOURCE_TYPES[kind], resource_name=name, configuration_keys=None)
        for name in names
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    if _is_of_one_broker(kind, names[0]):
        response = await client.ask_broker(int(names[0]), request, DescribeConfigsResponse)
    else:
        response = await client.ask(request, DescribeConfigsResponse)
    for result in response.results:
        check(result.error_code, result.error_message, f"Configs of {kind} {result.resource_name}".rstrip())
    return {result.resource_name: sorted(result.configs, key=lambda entry: entry.name) for result in response.results}


def _selected(entries: Iterable[DescribeConfigsResourceResult], kind: str, name: str, *, with_all: bool) -> Entries:
    """The configs that were set for the entity itself; with `with_all`, and for loggers, all."""
    if with_all or kind == BROKER_LOGGERS:
        return list(entries)
    own = {
        TOPICS: int(ConfigSource.TOPIC_CONFIG),
        BROKERS: int(
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG if name == DEFAULT else ConfigSource.DYNAMIC_BROKER_CONFIG
        ),
        CLIENT_METRICS: _DYNAMIC_CLIENT_METRICS,
    }[kind]
    return [entry for entry in entries if entry.config_source == own]


def _rows(kind: str, name: str, entries: Entries) -> Iterator[dict[str, object]]:
    for entry in entries:
        yield {
            "entity_type": kind,
            "entity_name": name,
            "name": entry.name,
            "value": entry.value,
            "is_sensitive": entry.is_sensitive,
            "source": _source(entry.config_source),
            "synonyms": [_synonym(found.source, found.name, found.value) for found in entry.synonyms],
        }


def _lines(kind: str, name: str, entries: Entries, *, with_all: bool) -> Iterator[str]:
    if name == DEFAULT:
        yield f"Default configs for {kind} in the cluster are:"
    else:
        yield f"{'All' if with_all else 'Dynamic'} configs for {kind[:-1]} {name} are:"
    for entry in entries:
        synonyms = ", ".join(_synonym(found.source, found.name, found.value) for found in entry.synonyms)
        is_sensitive = "true" if entry.is_sensitive else "false"
        yield f"  {entry.name}={_value(entry.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}"


def _synonym(source: int, name: str, value: str | None) -> str:
    return f"{_source(source)}:{name}={_value(value)}"


def _source(source: int) -> str:
    return SOURCES.get(source, SOURCES[0])


def _value(value: str | None) -> str:
    return "null" if value is None else value
