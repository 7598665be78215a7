"""`odradek configs --zookeeper` and `--metadata`: configs in the metadata itself, which brokers need before they start.

With ZooKeeper, SCRAM credentials of users, and configs of brokers that are not running. With the directory of a stopped
single node, the same. Passwords of brokers are encrypted with `password.encoder.secret`, which is given among the
configs and not stored. Secrets are not printed.

Kafka: ConfigCommand.processCommandWithZk, ConfigCommand.alterConfigWithZk, ConfigCommand.describeConfigWithZk.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config.dynamic.reconfiguration import check_change, is_password
from odradek.broker.config.password_encoder import PasswordEncoder
from odradek.broker.machine.log_setup import muted
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metadata.zookeeper_client import client_settings
from odradek.broker.tools.admin.configs.config_entities import (
    BROKERS,
    DEFAULT,
    USERS,
    Entities,
    configs_to_add,
    entities_of,
)
from odradek.broker.tools.admin.security.scram_requests import salted_password
from odradek.broker.tools.command.client_config import read_properties
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.running import run_command
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.controller.tree.embedded_tree import METADATA_FILE, TreeDatabase
from odradek.controller.tree.metadata_tree import MetadataTree, NoNode, SetData, TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import notify_config_change
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.storage.config.config_def import HIDDEN, ConfigError, Password
from odradek.timer.clock import SystemClock

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.command.output import Output

TIMEOUT_MS: Final = 30_000
ENCODER: Final = "password.encoder."
SECRET: Final = f"{ENCODER}secret"
_DEPRECATED: Final = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to."
)
_NOT_RUNNING: Final = (
    "Broker configuration operations using ZooKeeper are only supported if the affected broker(s) are not running."
)


def main(options: argparse.Namespace) -> int:
    """Describe or alter configs in the metadata. Returns the exit status."""
    return run_command(options, lambda out: asyncio.run(_run(options, out)))


async def _run(options: argparse.Namespace, out: Output) -> None:
    entities = _entities(options)
    added = configs_to_add(options.add_config, options.add_config_file)
    if options.zookeeper is not None:
        out.note(_DEPRECATED)
    try:
        with muted("kazoo"):  # it also raises what it logs
            async with _opened(options) as tree:
                client = MetadataClient(tree)
                if options.action == "describe":
                    await _describe(client, out, entities)
                else:
                    await _alter(client, out, entities, added, options.delete_config)
    except (ConfigError, StartupError, TreeError) as error:
        raise CommandFailed(str(error)) from error


def _entities(options: argparse.Namespace) -> Entities:
    if options.all:
        raise CommandFailed("--bootstrap-server must be specified for --all")
    entities = entities_of(options)
    for kind in entities.types:
        if kind not in (USERS, BROKERS):
            allowed = f"{USERS}, {BROKERS} with a --zookeeper argument"
            raise CommandFailed(f"Invalid entity type {kind}, the entity type must be one of {allowed}")
    return entities


@asynccontextmanager
async def _opened(options: argparse.Namespace) -> AsyncIterator[MetadataTree]:
    """The tree in ZooKeeper, or that of a stopped node. Raises: CommandFailed, StartupError, TreeError."""
    if options.zookeeper is not None:
        from odradek.controller.tree.zookeeper_tree import ZooKeeperTree

        file = {} if options.zk_tls_config_file is None else read_properties(options.zk_tls_config_file)
        zookeeper = await ZooKeeperTree.open(
            client_settings(options.zookeeper, file, TIMEOUT_MS),
            waits_for_server=False,
            creates_chroot=options.action == "alter",
        )
        try:
            yield zookeeper
        finally:
            await zookeeper.close()
        return
    database = await TreeDatabase.open(_database_path(options), SystemClock())
    try:
        yield await database.connect()
    finally:
        await database.close()


def _database_path(options: argparse.Namespace) -> str:
    """The file, which is created before the first start. Raises: CommandFailed."""
    path = os.path.join(options.metadata, METADATA_FILE)
    if not os.path.isdir(options.metadata) or (options.action == "describe" and not os.path.exists(path)):
        raise CommandFailed(f"{path}: there is no metadata")
    return path


async def _describe(client: MetadataClient, out: Output, entities: Entities) -> None:
    if entities.type == BROKERS:
        if not entities.names:
            raise CommandFailed("Error parsing broker . The broker's Entity Name must be a single integer value")
        await _check_not_running(client, entities, f"--bootstrap-server option must be specified to describe {BROKERS}")
    is_all = not entities.names
    nodes = await client.children(f"/config/{USERS}") if is_all else [_node(entities)]
    for node in nodes:
        config = await client.entity_config(f"{entities.type}/{node}")
        if config or not is_all:
            shown = {name: _shown(name, config[name]) for name in sorted(config)}
            text = ",".join(f"{name}={value}" for name, value in shown.items())
            row = {"entity_type": entities.type, "entity_name": znodes.desanitize(node), "configs": shown}
            out.result([row], [f"Configs for {_named(entities.type, node)} are {text}"])


def _shown(name: str, text: str) -> str:
    """The value without its secret. Apache prints salted and encrypted passwords, too."""
    if name not in SCRAM_MECHANISMS:
        return HIDDEN if is_password(name) else text
    try:
        return f"iterations={ScramCredential.of_text(text).iterations}"
    except ValueError:
        return HIDDEN


async def _alter(
    client: MetadataClient, out: Output, entities: Entities, added: dict[str, str], deleted: Sequence[str]
) -> None:
    wanted = f"{{add: {{{', '.join(added)}}}, delete: List({', '.join(deleted)})}}"
    refusal = f"--bootstrap-server option must be specified to update {entities.type} configs: {wanted}"
    if entities.type == USERS:
        added = _credentials(entities, added, deleted, refusal)
    else:
        await _check_not_running(client, entities, refusal)
        added = _broker_configs(added, per_broker=entities.name != DEFAULT)
    entity_path = f"{entities.type}/{_node(entities)}"
    config = await client.entity_config(entity_path)
    if unknown := [name for name in deleted if name not in config]:
        raise CommandFailed(f"Invalid config(s): {','.join(unknown)}")
    config = {name: text for name, text in (config | added).items() if name not in deleted}
    path, data = znodes.entity_config_path(entity_path), znodes.encode_entity_config(config)
    try:
        await client.tree.run(SetData(path, data))
    except NoNode:
        await client.create_recursive(path, data)
    await notify_config_change(client, entity_path)
    row = {"entity_type": entities.type, "entity_name": entities.name}
    out.result([row], [f"Completed updating config for entity: {_named(entities.type, _node(entities))}."])


def _credentials(entities: Entities, added: Mapping[str, str], deleted: Sequence[str], refusal: str) -> dict[str, str]:
    """The credentials as they are stored. Raises: CommandFailed."""
    if any(name not in SCRAM_MECHANISMS for name in (*added, *deleted)):
        info = "User configuration updates using ZooKeeper are only supported for SCRAM credential updates."
        raise CommandFailed(f"{refusal}. {info}")
    if DEFAULT in entities.names:
        raise CommandFailed(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials."
        )
    stored = {}
    for name, text in added.items():
        iterations, salt, salted = salted_password(name, text)
        stored[name] = SCRAM_MECHANISMS[name].credential(salt, salted, iterations).to_text()
    return stored


def _broker_configs(added: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """The configs as they are stored, with encrypted passwords. Raises: CommandFailed, ConfigError."""
    encoder = {name: text for name, text in added.items() if name.startswith(ENCODER)}
    stored = {name: text for name, text in added.items() if name not in encoder}
    check_change(stored, per_broker=per_broker)
    passwords = [name for name in stored if is_password(name)]
    if passwords and SECRET not in encoder:
        raise CommandFailed(
            f"{SECRET} must be specified to update Set({', '.join(passwords)}). Other password encoder configs like "
            "cipher algorithm and iterations may also be specified to override the default encoding parameters. "
            "Password encoder configs will not be persisted in ZooKeeper."
        )
    if passwords:
        password_encoder = _password_encoder(encoder)
        stored |= {name: password_encoder.encode(stored[name]) for name in passwords}
    return stored


def _password_encoder(texts: Mapping[str, str]) -> PasswordEncoder:
    def value(name: str) -> object:
        key = BROKER_CONFIG_KEYS[ENCODER + name]
        return key.parse(texts[key.name]) if key.name in texts else key.default_value()

    return PasswordEncoder(
        secret=cast("Password", value("secret")),
        cipher_algorithm=cast("str", value("cipher.algorithm")),
        key_length=cast("int", value("key.length")),
        iterations=cast("int", value("iterations")),
    )


async def _check_not_running(client: MetadataClient, entities: Entities, refusal: str) -> None:
    if entities.name == DEFAULT:
        running = len(await client.brokers_and_epochs())
        if running:
            raise CommandFailed(f"{refusal} - {running} brokers are running. {_NOT_RUNNING}")
    elif await client.exists(znodes.broker_id_path(int(entities.name or ""))):
        raise CommandFailed(f"{refusal} - broker {entities.name} is running. {_NOT_RUNNING}")


def _node(entities: Entities) -> str:
    """The name of the entity's node."""
    if entities.name == DEFAULT:
        return znodes.DEFAULT_ENTITY
    return znodes.sanitize(entities.name or "") if entities.type == USERS else str(int(entities.name or ""))


def _named(kind: str, node: str) -> str:
    """Kafka: ConfigCommand.Entity.toString."""
    kind = "user-principal" if kind == USERS else kind
    return f"default {kind}" if node == znodes.DEFAULT_ENTITY else f"{kind} '{znodes.desanitize(node)}'"
