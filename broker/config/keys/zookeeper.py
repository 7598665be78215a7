"""Keys of the connection to ZooKeeper. Without `zookeeper.connect` the broker keeps the metadata in `metadata.dir`.

Kafka: ZkConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.storage.config.config_def import ConfigType, Importance, at_least

ZOOKEEPER_KEYS: Final = (
    BrokerConfigKey(
        "zookeeper.connect",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "The ZooKeeper servers as host:port,host:port, with an optional path that holds the cluster. "
        "Without it the broker is a cluster of its own.",
    ),
    BrokerConfigKey(
        "zookeeper.session.timeout.ms",
        ConfigType.INT,
        "18000",
        Importance.HIGH,
        "ZooKeeper ends the broker's session after this time without a heartbeat.",
    ),
    BrokerConfigKey(
        "zookeeper.connection.timeout.ms",
        ConfigType.INT,
        None,
        Importance.HIGH,
        "How long to wait for the connection to ZooKeeper; the session timeout if it is not set.",
    ),
    BrokerConfigKey(
        "zookeeper.set.acl",
        ConfigType.BOOLEAN,
        "false",
        Importance.HIGH,
        "Whether the nodes the broker creates are protected by ACLs.",
    ),
    BrokerConfigKey(
        "zookeeper.max.in.flight.requests",
        ConfigType.INT,
        "10",
        Importance.HIGH,
        "Maximum number of unanswered requests to ZooKeeper; further ones wait.",
        at_least(1),
    ),
    BrokerConfigKey(
        "zookeeper.ssl.client.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.MEDIUM,
        "Whether the connection to ZooKeeper uses TLS.",
    ),
    BrokerConfigKey(
        "zookeeper.clientCnxnSocket",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "The ZooKeeper client's socket class; in Java TLS needs Netty's.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.keystore.location",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Key store with the client certificate for ZooKeeper.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.keystore.password",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Password of that key store.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.keystore.type",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Format of that key store; the file name tells if it is not set.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.truststore.location",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Trust store for the certificates of the ZooKeeper servers.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.truststore.password",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Password of that trust store.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.truststore.type",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Format of that trust store; the file name tells if it is not set.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.protocol",
        ConfigType.STRING,
        "TLSv1.2",
        Importance.LOW,
        "TLS version for the connection to ZooKeeper.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.enabled.protocols",
        ConfigType.LIST,
        None,
        Importance.LOW,
        "TLS versions that may be negotiated with ZooKeeper.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.cipher.suites",
        ConfigType.LIST,
        None,
        Importance.LOW,
        "Cipher suites that may be negotiated with ZooKeeper.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.endpoint.identification.algorithm",
        ConfigType.STRING,
        "HTTPS",
        Importance.LOW,
        "How the name of a ZooKeeper server is checked against its certificate; empty checks nothing.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.crl.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.LOW,
        "Whether revocation lists are consulted for ZooKeeper's certificates.",
    ),
    BrokerConfigKey(
        "zookeeper.ssl.ocsp.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.LOW,
        "Whether OCSP is consulted for ZooKeeper's certificates.",
    ),
)

ACL_ZOOKEEPER_URL: Final = "authorizer.zookeeper.url"

ACL_ZOOKEEPER_KEYS: Final = frozenset(
    {
        ACL_ZOOKEEPER_URL,
        "authorizer.zookeeper.connection.timeout.ms",
        "authorizer.zookeeper.session.timeout.ms",
        "authorizer.zookeeper.max.in.flight.requests",
        *(f"authorizer.{key.name}" for key in ZOOKEEPER_KEYS if key.name.startswith("zookeeper.ssl.")),
    }
)
"""Keys of AclAuthorizer: ACLs in a ZooKeeper of their own. They are in no table, as in Apache Kafka."""
