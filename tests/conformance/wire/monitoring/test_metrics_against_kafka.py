"""Each MBean that the table of metrics names is there in Apache Kafka, and figures of the same load are the same."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from odradek.broker.metrics.families.families import FAMILIES
from odradek.broker.metrics.family import NOT_IN_JMX
from odradek.broker.metrics.reference import WITHOUT_MEANING
from odradek.protocol.api import ApiKey
from odradek.protocol.records.compression import CompressionType
from odradek.timer.histogram import SIGNIFICANT_BITS
from tests.support.broker import Broker
from tests.support.in_process.scraping import Scraped
from tests.support.processes.apache.apache import FRUGAL, ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build, message_set

NOT_ON_ONE_BROKER = {
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=,topic=,partition=",
    "kafka.server:type=FetcherStats,name=RequestsPerSec,clientId=,brokerHost=,brokerPort=",
    "kafka.server:type=FetcherStats,name=BytesPerSec,clientId=,brokerHost=,brokerPort=",
    "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
    "kafka.server:type=DelayedDeleteRecordsMetrics,name=ExpiresPerSec",
    "kafka.server:type=LeaderReplication#byte-rate",
    "kafka.server:type=FollowerReplication#byte-rate",
    "kafka.server:type=AlterLogDirsReplication#byte-rate",
}
"""They are there while the broker follows another, after an operation has waited for followers in vain, or after a
quota of replication was asked for the first time.
"""

FORMAT = ("--report-format", "properties")
RECORDS = 100
FIGURES = {
    "kafka_server_brokertopicmetrics_messagesin_total": (
        "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec:Count"
    ),
    "kafka_server_brokertopicmetrics_producemessageconversions_total": (
        "kafka.server:type=BrokerTopicMetrics,name=ProduceMessageConversionsPerSec:Count"
    ),
    "kafka_server_brokertopicmetrics_fetchmessageconversions_total": (
        "kafka.server:type=BrokerTopicMetrics,name=FetchMessageConversionsPerSec:Count"
    ),
    "kafka_server_replicamanager_partitioncount": "kafka.server:type=ReplicaManager,name=PartitionCount:Value",
    "kafka_server_replicamanager_leadercount": "kafka.server:type=ReplicaManager,name=LeaderCount:Value",
    "kafka_server_replicamanager_underreplicatedpartitions": (
        "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions:Value"
    ),
    "kafka_server_replicamanager_atminisrpartitioncount": (
        "kafka.server:type=ReplicaManager,name=AtMinIsrPartitionCount:Value"
    ),
    "kafka_controller_kafkacontroller_activecontrollercount": (
        "kafka.controller:type=KafkaController,name=ActiveControllerCount:Value"
    ),
    "kafka_controller_kafkacontroller_globaltopiccount": (
        "kafka.controller:type=KafkaController,name=GlobalTopicCount:Value"
    ),
    "kafka_controller_kafkacontroller_globalpartitioncount": (
        "kafka.controller:type=KafkaController,name=GlobalPartitionCount:Value"
    ),
    "kafka_server_kafkaserver_brokerstate": "kafka.server:type=KafkaServer,name=BrokerState:Value",
}


def load(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
    client.create_partitions([NewPartitions("orders", 3)])["orders"].result(20)
    producer = Producer({"bootstrap.servers": bootstrap, "topic.metadata.refresh.interval.ms": 100})
    eventually(lambda: len(producer.list_topics("orders", 10).topics["orders"].partitions) == 3)
    for number in range(RECORDS):
        producer.produce("orders", b"x" * 100, partition=number % 3)
    assert producer.flush(20) == 0


def convert(broker: Broker) -> None:
    """Records that are compressed anew, that stay as they are, and of an old format; then a consumer of that format."""
    make_topic(broker, "converted", {"compression.type": "gzip"})
    values = [b"v"] * 5
    same = batch(*values[:3], compression_type=CompressionType.GZIP)
    with RawClient(broker.host, broker.port) as client:
        for version, records in ((8, batch(*values)), (8, same), (2, message_set(1, *values[:2]))):
            data = [{"name": "converted", "partition_data": [{"index": 0, "records": records}]}]
            client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data), version)
        wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
        topics = [{"topic": "converted", "partitions": wanted}]
        client.call(build(ApiKey.FETCH, replica_id=-1, max_wait_ms=100, min_bytes=1, topics=topics), 2)


def fetch(broker: ApacheBroker) -> None:
    """Without a group: a consumer's would make the topic of offsets. The second fetch waits in vain."""
    with RawClient(broker.host, broker.port) as client:
        for min_bytes in (1, 1 << 20):
            parts = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
            topics = [{"topic": "orders", "partitions": parts}]
            client.call(build(ApiKey.FETCH, replica_id=-1, max_wait_ms=100, min_bytes=min_bytes, topics=topics), 12)


def limit_clients(broker: ApacheBroker) -> None:
    """Clients have MBeans of their quotas only where they have quotas."""
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    request = build(
        ApiKey.ALTER_CLIENT_QUOTAS,
        entries=[
            {
                "entity": [{"entity_type": kind, "entity_name": None} for kind in ("user", "client-id")],
                "ops": [{"key": key, "value": 1e9, "remove": False} for key in keys],
            }
        ],
    )
    with RawClient(broker.host, broker.port) as client:
        response = client.call(request, 1)
    assert [entry.error_code for entry in response.entries] == [0]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def attributes(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`MBean:attribute` -> value, of an Apache Kafka broker after the load."""
    port = free_port()
    options = (
        "-Dcom.sun.management.jmxremote.authenticate=false",
        "-Dcom.sun.management.jmxremote.ssl=false",
        f"-Dcom.sun.management.jmxremote.port={port}",
        f"-Dcom.sun.management.jmxremote.rmi.port={port}",
        "-Djava.rmi.server.hostname=127.0.0.1",
    )
    directory = tmp_path_factory.mktemp("apache")
    broker = ApacheBroker(directory, zookeeper.new_chroot(), jvm_options=(*FRUGAL, *options))
    broker.start()
    try:
        limit_clients(broker)
        load(broker.bootstrap)
        convert(broker)
        fetch(broker)
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
        command = java_command("org.apache.kafka.tools.JmxTool", "--jmx-url", url, "--one-time", *FORMAT)
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        yield dict(re.findall(r"^(kafka\.[^:\n]+:.+:[\w.-]+)=(.*)$", printed, re.MULTILINE))
    finally:
        broker.close()


def shape(mbean: str) -> str:
    """The name without the values of its tags: all but type and name, in order."""
    domain, _, pairs = mbean.partition(":")
    keys = [pair if pair.startswith(("type=", "name=")) else pair.partition("=")[0] + "=" for pair in pairs.split(",")]
    return f"{domain}:{','.join([*keys[:1], *sorted(keys[1:], key=lambda key: not key.startswith('name='))])}"


def in_shape(mbean: str) -> str:
    """The same of a name in the table, which may end in `#attribute`."""
    name, sign, attribute = mbean.partition("#")
    return f"{shape(name)}{sign}{attribute}"


def test_each_mbean_of_the_table_is_there(attributes: dict[str, str]) -> None:
    shapes: set[str] = set()
    for name in attributes:
        match = re.fullmatch(r"(kafka\.[^:]+:.*):([^:]+)", name)
        if match is not None:
            found = shape(match[1])
            shapes |= {found, f"{found}#{match[2]}"}
    assert len(shapes) > 100
    claimed = {family.mbean for family in FAMILIES} - {NOT_IN_JMX, *NOT_ON_ONE_BROKER}
    assert {mbean for mbean in claimed if in_shape(mbean) not in shapes} == set()


def conversions(request: str) -> str:
    return f"kafka.network:type=RequestMetrics,name=MessageConversionsTimeMs,request={request}:Count"


def deprecated(request: str) -> str:
    tags = f"request={request},version=2,clientSoftwareName=unknown,clientSoftwareVersion=unknown"
    return f"kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,{tags}:Count"


def test_the_same_load_gives_the_same_figures(attributes: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    with running(OdradekBroker(tmp_path, {"odradek.metrics.listener": str(port)})) as broker:
        load(broker.bootstrap)
        convert(broker)
        ours = Scraped(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode())
    assert ours.value("kafka_server_brokertopicmetrics_producemessageconversions_total", topic="converted") == 5 + 2
    for request in ("Fetch", "Produce"):
        counted = ours.value("kafka_network_requestmetrics_messageconversionstimems_count", request=request)
        assert counted == ours.value("kafka_network_requestmetrics_totaltimems_count", request=request)
        total = attributes[conversions(request).replace("MessageConversionsTimeMs", "TotalTimeMs")]
        assert attributes[conversions(request)] == total, "every request counts, most of them with 0 ms"
        memory = ours.value("kafka_network_requestmetrics_temporarymemorybytes", request=request, quantile="0.999")
        theirs = conversions(request).replace("MessageConversionsTimeMs", "TemporaryMemoryBytes")
        most = int(attributes[theirs.replace(":Count", ":Max")].removesuffix(".0"))
        shift = most.bit_length() - SIGNIFICANT_BITS
        assert memory == most >> shift << shift > 0
        old = ours.value(
            "kafka_network_requestmetrics_deprecatedrequests_total",
            request=request,
            version="2",
            clientSoftwareName="unknown",
            clientSoftwareVersion="unknown",
        )
        assert old == int(attributes[deprecated(request)]) == 1
    for name, mbean in FIGURES.items():
        assert ours.value(name) == float(attributes[mbean]), name
    assert ours.value("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == RECORDS
    for partition in range(3):
        end = attributes[f"kafka.log:type=Log,name=LogEndOffset,topic=orders,partition={partition}:Value"]
        assert ours.value("kafka_log_log_logendoffset", topic="orders", partition=str(partition)) == float(end)


def test_each_mbean_of_apache_kafka_is_in_the_table_or_says_why_not(attributes: dict[str, str]) -> None:
    matches = [re.fullmatch(r"(kafka\.[^:]+:.*):[^:]+", name) for name in attributes]
    theirs = {shape(match[1]).removesuffix(",topic=") for match in matches if match is not None}
    served = {in_shape(family.mbean).partition("#")[0] for family in FAMILIES if family.mbean != NOT_IN_JMX}
    without = [mbean for mbeans, _ in WITHOUT_MEANING for mbean in mbeans]
    whole = {in_shape(mbean) for mbean in without if "#" not in mbean}
    of_attributes = {in_shape(mbean).partition("#")[0] for mbean in without if "#" in mbean}
    assert theirs - served == whole
    assert of_attributes <= served & theirs
