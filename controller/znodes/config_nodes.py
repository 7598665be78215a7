"""Writes the configs of topics, brokers, clients, users and IP addresses.

Any broker may write them, so they are not fenced by the controller epoch. The write fails if the controller has changed
since it was read, or if a KRaft controller has taken over. After a change of an existing entity's config, a sequential
notification node with the entity's path is created, and every broker reads the config again (`config_changes`). The
creation of a topic has no notification: the brokers read its config when they get LeaderAndIsr for it.

Kafka: KafkaZkClient.setOrCreateEntityConfigs, AdminZkClient.changeEntityConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import (
    ANY_VERSION,
    Check,
    Create,
    CreateMode,
    Multi,
    MultiFailed,
    NodeExists,
    NoNode,
    SetData,
    parent_path,
)
from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient


async def write_entity_config(
    client: MetadataClient, entity_path: str, config: Mapping[str, str], *, owner: str | None = None
) -> None:
    """Write the whole config of an entity; create its node if it does not exist.

    `owner`: the path of a node without which the config's node is not created. Raises: NoNode of the owner.
    Kafka: KafkaZkClient.setOrCreateEntityConfigs.
    """
    controller = await client.controller()
    entity = entity_path.replace("/", " ", 1)
    if controller is None:
        raise _moved(f"Cannot set entity configs for {entity} when there is no controller.")
    _, kraft_epoch, version = controller
    if kraft_epoch > 0:
        raise _moved(f"Cannot set entity configs for {entity} directly when there is a KRaft controller.")
    path = znodes.entity_config_path(entity_path)
    data = znodes.encode_entity_config(config)
    owners = () if owner is None else (Check(owner, ANY_VERSION),)
    while True:
        try:
            await client.tree.run(Multi((Check(znodes.CONTROLLER, version), SetData(path, data))))
            return
        except MultiFailed as failure:
            if failure.index == 0:
                raise _moved(f"Cannot set entity configs for {entity}: the controller has changed.") from failure
            if not isinstance(failure.cause, NoNode):
                raise failure.cause from failure
        try:
            await client.tree.run(Multi((*owners, Create(path, data))))
            return
        except MultiFailed as failure:
            if isinstance(failure.cause, NodeExists):
                continue
            if failure.index < len(owners) or not isinstance(failure.cause, NoNode):
                raise failure.cause from failure
        await client.create_recursive(parent_path(path))


def _moved(message: str) -> KafkaError:
    """The error code of Apache's ControllerMovedException."""
    return KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, message)


async def change_entity_config(client: MetadataClient, entity_path: str, config: Mapping[str, str]) -> None:
    """Write the whole config of an entity and notify every broker."""
    await write_entity_config(client, entity_path, config)
    await notify_config_change(client, entity_path)


async def change_topic_config(client: MetadataClient, topic: str, config: Mapping[str, str]) -> None:
    """As `change_entity_config`, for a topic that may be deleted meanwhile: nothing else would delete its config.

    Raises: KafkaError UNKNOWN_TOPIC_OR_PARTITION. Kafka: AdminZkClient.changeTopicConfig.
    """
    entity_path, owner = f"topics/{topic}", znodes.topic_path(topic)
    try:
        await write_entity_config(client, entity_path, config, owner=owner)
    except NoNode as error:
        raise no_topic(topic) from error
    await notify_config_change(client, entity_path)


def no_topic(topic: str) -> KafkaError:
    """The error of a topic that the metadata name and the tree does not. Kafka: AdminZkClient.validateTopicConfig."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic}' does not exist.")


async def notify_config_change(client: MetadataClient, entity_path: str) -> None:
    """Let every broker read the config of an entity again. Kafka: KafkaZkClient.createConfigChangeNotification."""
    await client.create_recursive(znodes.CONFIG_CHANGES)
    path = f"{znodes.CONFIG_CHANGES}/{znodes.CONFIG_CHANGE_PREFIX}"
    await client.tree.run(Create(path, znodes.encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL))
