"""Small requests that name one resource thousands of times: each answer would be hundreds of megabytes of copies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.support.loads.hostile.hostile_input import SOON_S, Watch
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PARTITIONS = 300
GROWTH_BYTES = 64 << 20
LARGEST_GROWTH_BYTES = 320 << 20
"""For an answer of 128 MB in memory and the values that it is made of."""
SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}
BLOB = bytes(100_000)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    """With a topic, and a group that has 300 offsets with large metadata and a member with large metadata."""
    with running(OdradekBroker(tmp_path_factory.mktemp("repeated"), SETTINGS)) as process:
        with RawClient(process.host, process.port, timeout_s=60) as client:
            topic = {"name": "t", "num_partitions": PARTITIONS, "replication_factor": 1}
            client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=30_000), 4)
            eventually(lambda: commit(client), accept=lambda error: error == ErrorCode.NONE)
            join(client)
        yield process


def commit(client: RawClient) -> int:
    client.call(build(ApiKey.FIND_COORDINATOR, key="g", key_type=0), 1)
    offsets = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": "m" * 3000}
        for index in range(PARTITIONS)
    ]
    request = build(ApiKey.OFFSET_COMMIT, group_id="g", topics=[{"name": "t", "partitions": offsets}])
    error: int = client.call(request, 5).topics[0].partitions[0].error_code  # type: ignore[attr-defined]
    return error


def join(client: RawClient) -> None:
    protocols = [{"name": "range", "metadata": BLOB}]
    request = build(
        ApiKey.JOIN_GROUP,
        group_id="g",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=1000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    joined = client.call(request, 2)
    member = joined.member_id  # type: ignore[attr-defined]
    assignments = [{"member_id": member, "assignment": BLOB}]
    generation = joined.generation_id  # type: ignore[attr-defined]
    request = build(
        ApiKey.SYNC_GROUP, group_id="g", generation_id=generation, member_id=member, assignments=assignments
    )
    assert client.call(request, 1).error_code == ErrorCode.NONE  # type: ignore[attr-defined]


def described(kind: int, name: str, count: int) -> Request:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    return build(
        ApiKey.DESCRIBE_CONFIGS, resources=[resource] * count, include_synonyms=True, include_documentation=True
    )


def several_names(count: int) -> Request:
    """Of the broker 0, for which `0`, `00` and so on stand as well."""
    resources = [
        {"resource_type": 4, "resource_name": "0" * (1 + index % 50), "configuration_keys": None}
        for index in range(count)
    ]
    return build(ApiKey.DESCRIBE_CONFIGS, resources=resources, include_synonyms=True, include_documentation=True)


@pytest.mark.parametrize(
    ("request_", "version", "answer_bytes"),
    [
        (build(ApiKey.DESCRIBE_GROUPS, groups=["g"] * 3000), 0, 600_000_000),
        (build(ApiKey.OFFSET_FETCH, groups=[{"group_id": "g", "topics": None}] * 800), 8, 700_000_000),
        (described(2, "t", 20_000), 4, 100_000_000),
        (described(4, "0", 4000), 4, 150_000_000),
        (several_names(4000), 4, 150_000_000),
    ],
    ids=["DescribeGroups", "OffsetFetch", "DescribeConfigs of a topic", "of a broker", "of a broker by several names"],
)
def test_an_answer_that_repeats_itself_is_not_copied(
    broker: OdradekBroker, request_: Request, version: int, answer_bytes: int
) -> None:
    """It is sent all the same, as Apache Kafka does; here its beginning is read only."""
    growth, watch = Growth(broker.pid), Watch(broker)
    with watch.looking(), RawClient(broker.host, broker.port, timeout_s=60) as client:
        client.send(request_, version)
        size = client.receive_size()
    assert size > answer_bytes
    assert growth.most < GROWTH_BYTES
    assert watch.longest_s < SOON_S


def test_an_answer_that_no_frame_can_hold_closes_the_connection(broker: OdradekBroker) -> None:
    """200 KB a mention, 4 GB in all."""
    growth = Growth(broker.pid)
    with RawClient(broker.host, broker.port, timeout_s=60) as client:
        client.send(build(ApiKey.DESCRIBE_GROUPS, groups=["g"] * 20_000), 0)
        assert client.awaits_close()
    assert growth.most < GROWTH_BYTES


def test_an_answer_that_is_too_large_without_repeating_itself_closes_the_connection(broker: OdradekBroker) -> None:
    """900 KB a mention, each time of the partitions in another order, so that no two mentions have the same answer."""
    indexes = list(range(PARTITIONS))
    orders = [indexes[turn % PARTITIONS :] + indexes[: turn % PARTITIONS] for turn in range(800)]
    asked = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": order}]} for order in orders]
    request = build(ApiKey.OFFSET_FETCH, groups=asked)
    growth, watch = Growth(broker.pid), Watch(broker)
    with watch.looking(), RawClient(broker.host, broker.port, timeout_s=60) as client:
        client.send(request, 8)
        assert client.awaits_close()
    assert growth.most < LARGEST_GROWTH_BYTES
    assert watch.longest_s < SOON_S
