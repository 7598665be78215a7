"""What Apache Kafka answers with `inter.broker.protocol.version=2.6`: old record formats, no topic ids, no features."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from tests.conformance.transcripts.test_transcripts_transactions import Producer
from tests.support.broker import Broker
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import OLD, batch, build, message_set

pytestmark = pytest.mark.oracle

FORMATS = ("0.9.0", "0.10.2", "2.6")


@pytest.fixture(scope="module")
def broker(make_broker: Callable[..., Broker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Takes the place of the broker that other tests share."""
    settings = {"inter.broker.protocol.version": "2.6", "log.message.format.version": "0.10.0"}
    process = make_broker(tmp_path_factory.mktemp("broker-2.6"), settings)
    process.start()  # type: ignore[attr-defined]
    yield process
    process.close()  # type: ignore[attr-defined]


def create(t: Transcript, stem: str, **configs: str) -> str:
    topic = t.name(stem)
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    new = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    return topic


def produce(topic: str, records: bytes) -> Request:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    return build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data)


def fetch(topic: str, offset: int = 0, max_bytes: int = 1 << 20) -> Request:
    partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}]
    return build(ApiKey.FETCH, max_wait_ms=100, min_bytes=1, topics=[{"topic": topic, "partitions": partitions}])


def describe(topic: str) -> Request:
    asked = {"resource_type": 2, "resource_name": topic, "configuration_keys": ["message.format.version"]}
    return build(ApiKey.DESCRIBE_CONFIGS, resources=[asked], include_synonyms=True)


@pytest.mark.parametrize("version", FORMATS)
def test_records_in_the_format_of_the_topic(transcript: Transcript, version: str) -> None:
    t = transcript
    topic = create(t, "old", message_format_version=version)
    t.call("described", describe(topic), 4)
    t.call("magic 0", produce(topic, message_set(0, b"zero", b"null key")), 1)
    t.call("magic 1", produce(topic, message_set(1, b"one", b"more", key=b"k")), 2)
    if version == "0.10.2":
        t.call("packed", produce(topic, message_set(1, b"a", b"b", compression_type=1)), 2)
    t.call("magic 2", produce(topic, batch(b"two", None, key=b"k")), 7)
    t.call("numbered", produce(topic, batch(b"n", producer_id=5, producer_epoch=0, base_sequence=0)), 7)
    t.call("a bad offset", produce(topic, batch(b"n", base_offset=3)), 7)
    for fetched in (0, 1, 2, 3, 4, 11):
        t.call(f"everything v{fetched}", fetch(topic), fetched)
        t.call(f"from the third v{fetched}", fetch(topic, 2), fetched)
        if version != "2.6" or fetched >= 4:  # else Apache fills what it has converted up to what it has found
            t.call(f"less than a message v{fetched}", fetch(topic, 0, 20), fetched)
    for timestamp in (-1, -2, OLD, OLD + 10):
        partitions = [{"partition_index": 0, "timestamp": timestamp}]
        asked = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
        for version_asked in (1, 5):
            t.call(f"time {timestamp} v{version_asked}", asked, version_asked)
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    epochs = build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": topic, "partitions": [partition]}])
    t.call("leader epoch", epochs, 3)


def test_the_format_of_the_broker(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "default")
    t.call("described", describe(topic), 4)
    t.call("magic 2", produce(topic, batch(b"v", key=b"k")), 7)
    t.call("stored", fetch(topic), 11)
    higher = create(t, "higher", message_format_version="2.8")
    t.call("a version above the protocol's", describe(higher), 4)
    t.call("into it", produce(higher, batch(b"v", key=b"k")), 7)
    for value in ("4.0-IV1", "4.0", "0.10", "1.0.1"):
        topics = [
            {
                "name": t.name(f"v{value}"),
                "num_partitions": 1,
                "replication_factor": 1,
                "configs": [{"name": "message.format.version", "value": value}],
            }
        ]
        t.call(f"version {value}", build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=5000, validate_only=True), 5)


def test_a_transaction_ends_without_partitions_in_an_old_format(transcript: Transcript) -> None:
    """They take no transactional records, and no markers; the coordinator goes on without them."""
    t = transcript.with_internal_topics()
    old, modern = create(t, "old", message_format_version="0.10.2"), create(t, "modern", message_format_version="2.6")
    producer = Producer(t, "txn").begin()
    t.quietly(producer.add(old, 0), 1)
    t.quietly(producer.add(modern, 0), 1)
    t.call("records in the old format", producer.records(old, 0, b"a"), 9)
    t.quietly(producer.records(modern, 0, b"b"), 9)
    t.call("markers", producer.marker(old, 0, 7), 1)
    t.call("ended", producer.end(committed=True), 3)
    producer.settle()
    t.call("described", producer.described(), 0)
    t.call("begun again", producer.add(old, 0), 3)


def test_topics_without_ids(transcript: Transcript) -> None:
    t = transcript
    topic = t.name("plain")
    new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    t.call("created", build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 7)
    for version in (10, 12):
        asked = build(ApiKey.METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False)
        t.call(f"metadata v{version}", asked, version)
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
    by_id = [{"topic_id": b"\x01" * 16, "partitions": partitions}]
    t.call("fetched by id", build(ApiKey.FETCH, max_wait_ms=100, min_bytes=1, topics=by_id), 13)
    t.call("fetched by name", fetch(topic), 12)
    gone = build(ApiKey.DELETE_TOPICS, topics=[{"topic_id": b"\x01" * 16}], timeout_ms=10_000)
    t.call("deleted by id", gone, 6)
    t.call("deleted by name", build(ApiKey.DELETE_TOPICS, topics=[{"name": topic}], timeout_ms=10_000), 6)


def test_no_features(transcript: Transcript) -> None:
    t = transcript
    t.call("versions", build(ApiKey.API_VERSIONS, client_software_name="a", client_software_version="1"), 3)
    update = {"feature": "metadata.version", "max_version_level": 1}
    for version in (0, 1):
        t.call(f"update v{version}", build(ApiKey.UPDATE_FEATURES, feature_updates=[update]), version)
