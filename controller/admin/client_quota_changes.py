"""AlterClientQuotas: changes of the quotas of users, client ids and IP addresses in the metadata tree (KIP-546).

Any broker writes them, and notifies all brokers through `/config/changes`. A node without configs and without nodes
below it is deleted, so that the tree does not grow with clients that once had a quota.

Kafka: ZkAdminManager.alterClientQuotas, AdminZkClient.changeEntityConfig, DynamicConfig.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.admin.client_quotas import CLIENT_ID, IP, USER
from odradek.controller.loop_turns import in_turns
from odradek.controller.tree.metadata_tree import Delete, NoNode, NotEmpty
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import change_entity_config, notify_config_change
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigKey, ConfigType, Importance, at_least, shown

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient

logger = logging.getLogger("odradek.controller")

EPSILON: Final = 1e-6
"""By how much a value may differ from a whole number."""

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1

CLIENT_QUOTAS: Final = (
    ConfigKey(
        "producer_byte_rate",
        ConfigType.LONG,
        str(_LONG_MAX),
        Importance.MEDIUM,
        "Bytes a second that a client may produce.",
    ),
    ConfigKey(
        "consumer_byte_rate",
        ConfigType.LONG,
        str(_LONG_MAX),
        Importance.MEDIUM,
        "Bytes a second that a client may fetch.",
    ),
    ConfigKey(
        "request_percentage",
        ConfigType.DOUBLE,
        str(float(_INT_MAX)),
        Importance.MEDIUM,
        "Percent of the time of the event loop that a client may use.",
    ),
    ConfigKey(
        "controller_mutation_rate",
        ConfigType.DOUBLE,
        str(float(_INT_MAX)),
        Importance.MEDIUM,
        "Partitions a second that a client may create and delete.",
    ),
)

CLIENT_CONFIGS: Final = ConfigDef(CLIENT_QUOTAS)

USER_CONFIGS: Final = ConfigDef(
    (
        *(
            ConfigKey(name, ConfigType.STRING, None, Importance.MEDIUM, "SCRAM credentials of a user.")
            for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ),
        *CLIENT_QUOTAS,
    )
)

IP_CONFIGS: Final = ConfigDef(
    (
        ConfigKey(
            "connection_creation_rate",
            ConfigType.INT,
            str(_INT_MAX),
            Importance.MEDIUM,
            "Connections a second that are accepted from an address.",
            at_least(0),
        ),
    )
)


class QuotaChange(NamedTuple):
    """One changed quota; the value None removes it."""

    key: str
    value: float | None


class _Node(NamedTuple):
    """The path below `/config`, the keys that may be set, and those that the whole node may have."""

    path: str
    settable: ConfigDef
    valid: ConfigDef


async def alter_client_quotas(
    client: MetadataClient,
    entity: Mapping[str, str | None],
    changes: Iterable[QuotaChange],
    *,
    validate_only: bool,
    has_address: Callable[[str], Awaitable[bool]],
) -> None:
    """Change the quotas of one entity: name by entity type, None for the default.

    `has_address` returns whether the name of a host, or an address, can be resolved.

    Raises: KafkaError, TreeError, BadZnode.
    """
    node = await _node_of(entity, has_address)
    configs = await client.entity_config(node.path)
    async for key, value in in_turns(changes):
        if value is None:
            configs.pop(key, None)
        else:
            configs[key] = _text(key, value, node.settable)
    if not validate_only:
        _validate(configs, node.valid)
        await _write(client, node.path, configs)


async def write_client_config(client: MetadataClient, path: str, configs: Mapping[str, str]) -> None:
    """Replace the whole config of a user at `path` below `/config`. Raises: KafkaError UNKNOWN_SERVER_ERROR."""
    _validate(configs, USER_CONFIGS)
    await _write(client, path, configs)


async def _write(client: MetadataClient, path: str, configs: Mapping[str, str]) -> None:
    logger.info("Changing the configs of %s to %s", path, sorted(configs))
    if configs or not await _delete_if_empty(client, path):
        await change_entity_config(client, path, configs)
    else:
        await notify_config_change(client, path)


async def _node_of(entity: Mapping[str, str | None], has_address: Callable[[str], Awaitable[bool]]) -> _Node:
    """Kafka: ZkAdminManager.parseAndSanitizeQuotaEntity."""
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    names = {kind: znodes.DEFAULT_ENTITY if name is None else znodes.sanitize(name) for kind, name in entity.items()}
    if IP in names:
        if len(names) > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Invalid quota entity combination, IP entity should not be used with user/client ID entity.",
            )
        ip = names[IP]
        if ip != znodes.DEFAULT_ENTITY and not await has_address(ip):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{ip} is not a valid IP or resolvable host.")
        return _Node(f"ips/{ip}", IP_CONFIGS, IP_CONFIGS)
    if USER not in names:
        return _Node(f"clients/{names[CLIENT_ID]}", CLIENT_CONFIGS, CLIENT_CONFIGS)
    user = names[USER]
    if CLIENT_ID in names:
        return _Node(f"users/{user}/clients/{names[CLIENT_ID]}", USER_CONFIGS, CLIENT_CONFIGS)
    return _Node(f"users/{user}", USER_CONFIGS, CLIENT_CONFIGS if user == znodes.DEFAULT_ENTITY else USER_CONFIGS)


def _text(key: str, value: float, settable: ConfigDef) -> str:
    """The text of a value, as Kafka writes it."""
    definition = settable.get(key)
    if definition is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if definition.type is ConfigType.DOUBLE:
        return shown(value)
    if definition.type is ConfigType.STRING:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    whole = _whole_number(value + EPSILON, _LONG_MAX if definition.type is ConfigType.LONG else _INT_MAX)
    if abs(float(whole) - value) > EPSILON:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a {definition.type.name} value")
    return str(whole)


def _whole_number(value: float, greatest: int) -> int:
    """Cut off as Java casts a double: NaN is 0, and what is too large the greatest number."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return greatest if value > 0 else -greatest - 1
    return max(min(int(value), greatest), -greatest - 1)


def _validate(configs: Mapping[str, str], valid: ConfigDef) -> None:
    """Check the whole node. Raises: KafkaError UNKNOWN_SERVER_ERROR, as Apache Kafka has no other code for it."""
    for key, text in configs.items():
        definition = valid.get(key)
        if definition is None:
            logger.info("Unknown Dynamic Configuration: %s", key)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            definition.parse(text)
        except ConfigError as error:
            logger.info("%s", error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


async def _delete_if_empty(client: MetadataClient, path: str) -> bool:
    """Delete the node of an entity without configs, unless there are nodes below it. For a user with a client id, the
    parents that have nothing else are deleted too.

    Kafka: AdminZkClient.tryCleanQuotaNodes.
    """
    if await client.children(znodes.entity_config_path(path)):
        return False
    doomed = [path]
    user, _, client_id = path.partition("/clients/")
    if client_id and await client.children(znodes.entity_config_path(f"{user}/clients")) == (client_id,):
        doomed.append(f"{user}/clients")
        below_user = await client.children(znodes.entity_config_path(user))
        if not await client.entity_config(user) and below_user == ("clients",):
            doomed.append(user)
    logger.info("Deleting the empty quota node %s", doomed[-1])
    for entity_path in doomed:
        try:
            await client.tree.run(Delete(znodes.entity_config_path(entity_path)))
        except NoNode:
            continue
        except NotEmpty:  # another broker has made a node below it meanwhile
            break
    return True
