"""Generates docs/metrics.md from the table of metrics.

`python -m odradek.broker.metrics.reference > docs/metrics.md`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from odradek.broker.metrics.families.broker_families import BROKER_FAMILIES
from odradek.broker.metrics.families.cleaner_families import CLEANER_FAMILIES
from odradek.broker.metrics.families.connection_families import CONNECTION_FAMILIES
from odradek.broker.metrics.families.controller_families import CONTROLLER_FAMILIES
from odradek.broker.metrics.families.exporter_families import EXPORTER_FAMILIES
from odradek.broker.metrics.families.group_families import GROUP_FAMILIES
from odradek.broker.metrics.families.quota_families import QUOTA_FAMILIES
from odradek.broker.metrics.families.replica_families import REPLICA_FAMILIES
from odradek.broker.metrics.families.request_families import REQUEST_FAMILIES
from odradek.broker.metrics.families.topic_families import TOPIC_FAMILIES
from odradek.broker.metrics.family import NOT_IN_JMX, Family, Kind

_INTRODUCTION: Final = """# Metrics

Generated from the tables of the code: `python -m odradek.broker.metrics.reference > docs/metrics.md`.

With `odradek.metrics.listener=127.0.0.1:9404` a broker serves its metrics to Prometheus at
`http://127.0.0.1:9404/metrics`, as text or, if `Accept` asks for it, as OpenMetrics. Without the key nothing is
counted and nothing is loaded. The endpoint has neither TLS nor passwords: keep it on loopback or in a network that
you trust.

- **Names.** They are those that dashboards for Apache Kafka read: the names that the Prometheus JMX exporter gives
  Kafka's MBeans with the rules that Strimzi ships (`kafka-metrics`, `lowercaseOutputName: true`), a superset of the
  exporter's example `kafka-2_0_0.yml`. Lag and offsets have the names of kafka_exporter; metrics that only Odradek has
  begin with `odradek_`. There are also the usual `process_*` and `python_*`.
- **There is no JMX.** Tools that speak only JMX (jconsole, jmxtrans, Cruise Control's reporter) cannot read the
  metrics. There are no `jvm_*` metrics.
- **Rates.** A meter of Kafka is a counter here, as with the JMX exporter: use `rate()`. Sums over topics: the series
  without a `topic` counts all topics, so that `sum(rate(NAME{topic!=""}[5m]))` and `rate(NAME{topic=""}[5m])` are
  equal.
- **Quantiles** are those of the last five minutes, exact up to 127 and then to 2 %. Kafka's are of a sample of
  1028 values.
- **One broker publishes each figure,** so that sums over brokers are right: the active controller those of the
  cluster, the leader those of a partition, the coordinator those of a group. The lag of a partition that the
  coordinator of a group does not host is left out.
- **Cardinality.** Above `odradek.metrics.max.partitions`, `.max.topics` or `.max.groups` the series of single
  partitions, topics or groups are left out; `odradek_metrics_left_out` is then 1. Of the names of client
  software, the 100 most frequent are listed. With more than 1,000 clients under a type of quota, the clients of that
  type are left out.

[Performance](performance.md#metrics) has the cost of metrics. Metrics of Apache Kafka that have no meaning here are
listed [below](#without-a-meaning-here). Each other MBean of a broker in ZooKeeper mode has its rows, except those that
come and go: `replica-fetcher-metrics` and `kafka-server-controlled-shutdown-metrics`, also figures of Java's network
client, and `remainingLogsToRecover` and `remainingSegmentsToRecover`, because the endpoint opens when the logs are
loaded. Of the many attributes of `socket-server-metrics` there are those of connections and authentications, and
`ControllerMutation` has no `tokens`.

[monitoring/](monitoring/) has a dashboard for Grafana and alert rules for Prometheus; both were tried with
Prometheus 2.42 (`tests/soak/consoles/test_prometheus_soak.py`). Times are measured for a
sample of 5 requests a second of each API, and weighted; requests, errors, records and bytes are all counted.
"""

_TABLES: Final = (
    ("Broker", BROKER_FAMILIES),
    ("Connections", CONNECTION_FAMILIES),
    ("Compaction", CLEANER_FAMILIES),
    ("Topics", TOPIC_FAMILIES),
    ("Requests", REQUEST_FAMILIES),
    ("Quotas of clients", QUOTA_FAMILIES),
    ("Replicas and logs", REPLICA_FAMILIES),
    ("Controller", CONTROLLER_FAMILIES),
    ("Groups", GROUP_FAMILIES),
    ("Topics, offsets and lag, as kafka_exporter names them", EXPORTER_FAMILIES),
)

WITHOUT_MEANING: Final = (
    (
        (
            "kafka.network:type=Acceptor,name=AcceptorBlockedPercent,listener=",
            "kafka.network:type=SocketServer,name=ControlPlaneExpiredConnectionsKilledCount",
            "kafka.network:type=SocketServer,name=ControlPlaneNetworkProcessorAvgIdlePercent",
        ),
        "one event loop accepts all connections and handles all requests, those of the control plane, too",
    ),
    (
        (
            "kafka.log:type=LogCleaner,name=DeadThreadCount",
            "kafka.server:type=ReplicaFetcherManager,name=DeadThreadCount,clientId=",
            "kafka.server:type=ReplicaAlterLogDirsManager,name=DeadThreadCount,clientId=",
        ),
        "there are no such threads; a worker process that ends is replaced",
    ),
    (
        (
            "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate,clientId=",
            "kafka.server:type=ReplicaAlterLogDirsManager,name=MinFetchRate,clientId=",
        ),
        "a rate over one minute: `min(rate(kafka_server_fetcherstats_requests_total[1m]))`; moves of logs read files",
    ),
    (
        ("kafka.network:type=RequestChannel,name=ResponseQueueSize,processor=",),
        "there is one event loop: `kafka_network_requestchannel_responsequeuesize`",
    ),
    (
        ("kafka.server:type=socket-server-metrics#MemoryPoolAvgDepletedPercent",),
        "a time of threads that wait for memory, as MemoryPoolDepletedTimeTotal; "
        "`kafka_network_socketserver_memorypoolavailable` is 0 or less while connections wait",
    ),
    (
        (
            "kafka.server:type=SessionExpireListener,name=ZooKeeperReadOnlyConnectsPerSec",
            "kafka.server:type=SessionExpireListener,name=ZooKeeperSaslAuthenticationsPerSec",
            "kafka.server:type=SessionExpireListener,name=SessionState",
        ),
        "there are no read-only sessions, kazoo reports no event for SASL, and a state is a text",
    ),
    (
        ("kafka.server:type=KafkaServer,name=ClusterId", "kafka.server:type=app-info,id="),
        "texts: the labels of `odradek_info`",
    ),
    (
        (
            "kafka.controller:type=KafkaController,name=FencedBrokerCount",
            "kafka.controller:type=KafkaController,name=ZkMigrationState",
            "kafka.server:type=MetadataLoader,name=CurrentControllerId",
        ),
        "there is no KRaft",
    ),
    (
        ("kafka.controller:type=ControllerStats,name=ControllerShutdownRateAndTimeMs",),
        "the endpoint is closed before the controller ends",
    ),
    (
        (
            "kafka.server:type=AddPartitionsManager-channel-metrics",
            "kafka.server:type=alter-partition-metrics,BrokerId=",
            "kafka.server:type=controller-channel-metrics,broker-id=",
            "kafka.server:type=forwarding-metrics,BrokerId=",
            "kafka.server:type=txn-marker-channel-metrics",
        ),
        "figures of Java's network client",
    ),
    (
        ("kafka.server:type=KafkaServer,name=yammer-metrics-count", "kafka.server:type=kafka-metrics-count"),
        "how many metrics the libraries of Java have",
    ),
)
"""Metrics of Apache Kafka by the names of their MBeans, and why they are not there."""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, families in _TABLES:
        parts.append(f"\n## {title}\n\n| name | labels | what it is | Kafka's MBean |\n| --- | --- | --- | --- |\n")
        parts.extend(map(_row, families))
    parts.append("\n## Without a meaning here\n\n| metrics of Apache Kafka | why |\n| --- | --- |\n")
    parts.extend(f"| {_list(mbeans)} | {why} |\n" for mbeans, why in WITHOUT_MEANING)
    return "".join(parts)


def _list(mbeans: Iterable[str]) -> str:
    return ", ".join(f"`{mbean.partition(':')[2]}`" for mbean in mbeans)


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    names = f"`{family.name}`" + (f", `{family.name}_count`" if family.kind is Kind.SUMMARY else "")
    mbean = "" if family.mbean == NOT_IN_JMX else f"`{family.mbean}`"
    return f"| {names} | {labels} | {family.description} | {mbean} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
