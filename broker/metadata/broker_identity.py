"""The identity of a broker: cluster id, broker id, and registered addresses.

`meta.properties` in every directory of `log.dirs` names the cluster and the broker. The start is refused when they
differ from the metadata tree, from the configuration or from each other. A single broker whose metadata was lost takes
the cluster id of its directories; a ZooKeeper without a cluster id gets a new one, which the directories must match.

Kafka: KafkaServer.startup, KafkaServer.createBrokerInfo, KafkaServer.getOrGenerateBrokerId, MetaPropertiesEnsemble.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint
from odradek.controller.znodes.registration import create_base_nodes, create_or_get_cluster_id, generate_broker_id
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.storage.disk.log_dir import LogDir, check_meta_properties

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.endpoint import EndPoint as ListenerEndPoint
    from odradek.controller.znodes.metadata_client import MetadataClient

GENERATE_ID = -1
"""`broker.id` for which the id of the directories is taken, else a new one."""


class BrokerIdentity(NamedTuple):
    """The ids of a broker."""

    cluster_id: str
    broker_id: int


async def establish_identity(
    config: BrokerConfig, client: MetadataClient, log_dirs: Sequence[LogDir], new_id: Callable[[], bytes]
) -> BrokerIdentity:
    """Determine the ids and write them into every directory; also create the base nodes of the tree.

    Raises: LogDirError for a directory of another cluster or broker. A directory that cannot be read or written is
    taken offline.
    """
    await create_base_nodes(client)
    stored = {log_dir: found for log_dir in log_dirs if (found := _read(log_dir)) is not None}

    def new_cluster_id() -> str:
        known = (
            ()
            if config.uses_zookeeper
            else [found["cluster.id"] for found in stored.values() if found.get("cluster.id")]
        )
        return known[0] if known else uuid_to_text(new_id())

    cluster_id = await create_or_get_cluster_id(client, new_cluster_id)
    broker_id = None if config.broker_id == GENERATE_ID else config.broker_id
    for log_dir, found in stored.items():
        check_meta_properties(found, path=log_dir.path, broker_id=broker_id, cluster_id=cluster_id)
        if broker_id is None and found.get("broker.id"):
            broker_id = int(found["broker.id"])
    if broker_id is None:
        broker_id = await generate_broker_id(client, config.reserved_broker_max_id)
    identity = BrokerIdentity(cluster_id, broker_id)
    for log_dir, found in stored.items():
        _write(log_dir, found, identity)
    return identity


def registered_info(config: BrokerConfig, broker_id: int, bound: Iterable[ListenerEndPoint]) -> BrokerInfo:
    """The registration: the advertised listeners, with the ports that were bound.

    In ZooKeeper mode a listener without a host gets the host name of the machine, as in Apache Kafka, with a DNS query.
    """
    ports = {end_point.listener_name: end_point.port for end_point in bound}
    end_points = []
    for advertised in config.listeners.advertised:
        host = advertised.host or (socket.getfqdn() if config.uses_zookeeper else "localhost")
        port = advertised.port or ports[advertised.listener_name]
        end_points.append(EndPoint(host, port, advertised.listener_name, advertised.security_protocol))
    return BrokerInfo(
        broker=Broker(broker_id, tuple(end_points), config.broker_rack),
        version=config.metadata_version.broker_registration_version,
    )


def _read(log_dir: LogDir) -> dict[str, str] | None:
    """The properties of the directory, empty for a new one; None if they cannot be read."""
    try:
        return log_dir.read_meta_properties() or {}
    except OSError as error:
        log_dir.fail("Error while reading meta.properties", error)
        return None


def _write(log_dir: LogDir, found: dict[str, str], identity: BrokerIdentity) -> None:
    properties = {"version": "0", "broker.id": str(identity.broker_id), "cluster.id": identity.cluster_id}
    if "directory.id" in found:
        properties["directory.id"] = found["directory.id"]
    try:
        log_dir.write_meta_properties(properties)
    except OSError as error:
        log_dir.fail("Error while formatting the log directory", error)
