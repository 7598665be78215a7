"""Registers a broker in the cluster: the base nodes, the cluster id, a broker id, and the registration.

The registration is an ephemeral node. The zxid of the transaction that created it (its czxid) is the *broker epoch*. It
is larger than those of all earlier registrations, and requests with an older broker epoch are refused.

Kafka: KafkaZkClient.registerBroker, KafkaZkClient.createOrGetClusterId, KafkaZkClient.generateBrokerSequenceId,
KafkaZkClient.createTopLevelPaths, KafkaZkClient.updateBrokerInfo.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from odradek.controller.tree.metadata_tree import (
    Create,
    CreateMode,
    Delete,
    Multi,
    MultiFailed,
    NodeExists,
    NoNode,
    SetData,
)
from odradek.controller.znodes import broker_node, znodes
from odradek.controller.znodes.metadata_client import MetadataClient, stat_of

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import BrokerInfo
    from odradek.timer.clock import Clock

logger = logging.getLogger("odradek.controller")

RESERVED_BROKER_MAX_ID: Final = 1000
"""The default of reserved.broker.max.id; generated ids are larger."""


class RegistrationRefused(Exception):
    """The broker cannot join with its configuration; the message says why."""


async def create_base_nodes(client: MetadataClient) -> None:
    """Create the nodes that every broker creates at its start if they do not exist."""
    await client.create_all(znodes.PERSISTENT_PATHS)


async def create_or_get_cluster_id(client: MetadataClient, new_cluster_id: Callable[[], str]) -> str:
    """The id of the cluster; the first broker creates it."""
    while True:
        node = await client.get(znodes.CLUSTER_ID)
        if node is not None:
            return znodes.decode_cluster_id(node.data)
        await client.create_recursive(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_cluster_id()))


async def generate_broker_id(client: MetadataClient, reserved_max_id: int = RESERVED_BROKER_MAX_ID) -> int:
    """A new broker id: each write of the node increments its version, and the version plus the reserved ids is the id.

    Kafka: KafkaZkClient.generateBrokerSequenceId.
    """
    while True:
        try:
            stat = await client.tree.run(SetData(znodes.BROKER_SEQUENCE_ID, b""))
        except NoNode:
            await client.create_recursive(znodes.BROKER_SEQUENCE_ID)
        else:
            return stat.version + reserved_max_id


async def check_end_points_are_free(client: MetadataClient, info: BrokerInfo) -> None:
    """Refuse to start with an address that another live broker advertises."""
    own = {(point.host, point.port) for point in info.broker.end_points}
    for other in await client.brokers_and_epochs():
        taken = own & {(point.host, point.port) for point in other.end_points}
        if taken and other.id != info.broker.id:
            addresses = ",".join(f"{host}:{port}" for host, port in sorted(taken))
            raise RegistrationRefused(
                f"Configured end points {addresses} in advertised listeners are already registered by broker {other.id}"
            )


async def register_broker(
    client: MetadataClient, info: BrokerInfo, clock: Clock, previous_session_id: int | None = None
) -> int:
    """Register the broker and return its broker epoch. Raises RegistrationRefused if another broker has its id.

    A node of this client's previous session that the server has not deleted yet is replaced (KAFKA-7165).
    """
    path = znodes.broker_id_path(info.broker.id)
    data = broker_node.encode_broker(info, clock.time_ms())
    while True:
        try:
            results = await client.tree.run(Multi((Create(path, None, CreateMode.EPHEMERAL), SetData(path, data, 0))))
        except MultiFailed as failure:
            if not isinstance(failure.cause, NodeExists):
                raise failure.cause from failure
        else:
            broker_epoch = stat_of(results[1]).czxid
            logger.info(
                "Registered broker %d at path %s with addresses: %s, czxid (broker epoch): %d",
                info.broker.id,
                path,
                ",".join(point.connection_string for point in info.broker.end_points),
                broker_epoch,
            )
            return broker_epoch
        existing = await client.get(path)
        if existing is None:
            continue
        owner = existing.stat.ephemeral_owner
        if owner == client.tree.session_id:
            return existing.stat.czxid
        if owner != previous_session_id:
            raise RegistrationRefused(
                f"A broker is already registered on the path {path}. Either another broker with the id "
                f"{info.broker.id} is running, or the session of its last run has not timed out yet"
            )
        await _delete_if_there(client, path)


async def _delete_if_there(client: MetadataClient, path: str) -> None:
    try:
        await client.tree.run(Delete(path))
    except NoNode:
        return


async def update_broker(client: MetadataClient, info: BrokerInfo, clock: Clock) -> None:
    """Write new listeners to the existing registration; the broker epoch stays.

    Before the broker is registered, at its start or in a new session, there is nothing to update: the registration
    has the new listeners.
    """
    path = znodes.broker_id_path(info.broker.id)
    with contextlib.suppress(NoNode):
        await client.tree.run(SetData(path, broker_node.encode_broker(info, clock.time_ms())))
