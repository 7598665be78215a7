"""Keys of listeners, sockets and the limits on connections.

Kafka: SocketServerConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config.config_def import ConfigType, Importance, at_least

NETWORK_KEYS: Final = (
    BrokerConfigKey(
        "listeners",
        ConfigType.STRING,
        "PLAINTEXT://:9092",
        Importance.HIGH,
        "Addresses on which the broker listens: NAME://host:port,... An empty host means every interface. Names other "
        "than security protocols need an entry in listener.security.protocol.map.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "advertised.listeners",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "Addresses that clients and other brokers get, if they differ from listeners; not 0.0.0.0.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "listener.security.protocol.map",
        ConfigType.STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        Importance.LOW,
        "The security protocol behind each listener name: NAME:PROTOCOL,...",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "control.plane.listener.name",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "Separate listener for the controller's requests.",
    ),
    BrokerConfigKey(
        "socket.send.buffer.bytes",
        ConfigType.INT,
        "102400",
        Importance.HIGH,
        "Send buffer (SO_SNDBUF) of connections; -1 leaves it to the system.",
    ),
    BrokerConfigKey(
        "socket.receive.buffer.bytes",
        ConfigType.INT,
        "102400",
        Importance.HIGH,
        "Receive buffer (SO_RCVBUF) of connections; -1 leaves it to the system.",
    ),
    BrokerConfigKey(
        "socket.request.max.bytes",
        ConfigType.INT,
        "104857600",
        Importance.HIGH,
        "The largest request that is accepted; a larger one closes the connection.",
        at_least(1),
    ),
    BrokerConfigKey(
        "socket.listen.backlog.size",
        ConfigType.INT,
        "50",
        Importance.MEDIUM,
        "Connections the system keeps waiting to be accepted.",
        at_least(1),
    ),
    BrokerConfigKey(
        "max.connections.per.ip",
        ConfigType.INT,
        "2147483647",
        Importance.MEDIUM,
        "Maximum number of connections of one address; further ones are closed. 0 is only allowed with overrides.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "max.connections.per.ip.overrides",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "Limits for single addresses: address:limit,...",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "max.connections",
        ConfigType.INT,
        "2147483647",
        Importance.MEDIUM,
        "Maximum number of connections; beyond it no connection is accepted until one closes.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "max.connection.creation.rate",
        ConfigType.INT,
        "2147483647",
        Importance.MEDIUM,
        "Maximum number of new connections a second.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "connections.max.idle.ms",
        ConfigType.LONG,
        "600000",
        Importance.MEDIUM,
        "A connection is closed after this time without traffic; with a negative value never.",
    ),
    BrokerConfigKey(
        "connection.failed.authentication.delay.ms",
        ConfigType.INT,
        "100",
        Importance.LOW,
        "How long the broker waits before it answers a failed authentication.",
        at_least(0),
    ),
    BrokerConfigKey(
        "queued.max.requests",
        ConfigType.INT,
        "500",
        Importance.HIGH,
        "Connections of one listener that are closed while there is work on their requests. A listener with so many "
        "accepts no one until there are fewer. In Apache Kafka: requests that wait for a handler.",
        at_least(1),
    ),
    BrokerConfigKey(
        "queued.max.request.bytes",
        ConfigType.LONG,
        "-1",
        Importance.MEDIUM,
        "Bytes of requests that are being received or handled, over all connections; -1 sets no limit. While they are "
        "used up, connections are not read whose next request does not arrive at once.",
    ),
    BrokerConfigKey(
        "num.network.threads",
        ConfigType.INT,
        "3",
        Importance.HIGH,
        "Threads that read and write connections in Apache Kafka. Here one event loop does, whatever the number.",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
)
