"""Every API with collections that are null, empty and full of duplicates, generated from the schemas.

The broker answers every request or closes the connection, soon, and goes on serving; the log holds no traceback. Apache
Kafka itself leaves a few of these unanswered; they are listed, and ours must answer them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Field, Kind, Primitive, Request, Struct
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from tests.support.broker import Broker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

# What a stranger must not send while others use the broker: these change or end the broker itself.
CONTROL = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}
# Apache Kafka 3.9 says nothing at all to these.
UNANSWERED_BY_APACHE = {
    "OffsetFetch-v9-empty",
    "OffsetFetch-v9-null",
    "AddPartitionsToTxn-v5-empty",
    "AddPartitionsToTxn-v5-null",
    "AlterConfigs-v0-duplicates",
    "AlterConfigs-v2-duplicates",
}
COLLECTIONS = ("empty", "null", "one", "duplicates")
OWN_TIMEOUTS = ("timeout_ms", "max_wait_ms", "rebalance_timeout_ms", "session_timeout_ms", "transaction_timeout_ms")


def sample(struct_type: type[Struct], version: int, collections: str) -> Struct:
    """An instance with every array in it (nested ones too) empty, null where that may be, or of equal items."""
    values: dict[str, object] = {}
    for field in struct_type.FIELDS:
        if not field.versions.covers(version) and not field.tagged.covers(version):
            continue
        value = sample_value(field, version, collections)
        if value is not LEFT_OUT:
            values[field.name] = value
    return struct_type(**values)


LEFT_OUT = object()


def sample_value(field: Field, version: int, collections: str) -> object:
    if field.name in OWN_TIMEOUTS:
        return 10
    if field.kind is Kind.STRUCT:
        assert isinstance(field.element, type)
        return sample(field.element, version, collections)
    if collections == "null" and field.nullable.covers(version):
        return None
    if field.kind is not Kind.ARRAY:
        return LEFT_OUT
    if collections in ("empty", "null"):
        return []
    if isinstance(field.element, Primitive):
        item: object = field.element.default
    else:
        assert field.element is not None
        item = sample(field.element, version, collections)
    return [item, item] if collections == "duplicates" else [item]


def requests() -> Iterator[tuple[str, Request, int]]:
    for spec in API.values():
        if spec.key in CONTROL:
            continue
        for version in sorted({spec.min_version, spec.max_version}):
            for collections in COLLECTIONS:
                message = sample(spec.request_type(), version, collections)
                assert isinstance(message, Request)
                yield f"{spec.name}-v{version}-{collections}", message, version


def answers(broker: Broker, request: Request, version: int) -> bool:
    """Whether the broker answers or closes; an answer must be decodable."""
    with RawClient(broker.host, broker.port) as client:
        if request.API_KEY == ApiKey.PRODUCE and getattr(request, "acks", 0) == 0:  # another request shows its end
            client.send(request, version)
            request, version = build(ApiKey.API_VERSIONS), 0
        try:
            client.call(request, version)
        except ConnectionClosedError:
            pass
        except TimeoutError:
            return False
    return True


@pytest.mark.parametrize(
    ("name", "request_", "version"), [pytest.param(*request, id=request[0]) for request in requests()]
)
def test_every_collection_is_taken(broker: Broker, name: str, request_: Request, version: int) -> None:
    if broker.target == "odradek" or name not in UNANSWERED_BY_APACHE:
        assert answers(broker, request_, version)


def test_the_broker_goes_on(broker: Broker) -> None:
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.API_VERSIONS), 0)
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == 0
    if broker.target == "odradek":
        log = broker.log_text()
        assert "Traceback" not in log, log[log.index("Traceback") :][:3000]


@pytest.mark.parametrize(
    ("label", "request_", "version"),
    [
        (
            "records that are null",
            build(
                ApiKey.PRODUCE,
                acks=-1,
                timeout_ms=100,
                topic_data=[{"name": "no-such-topic", "partition_data": [{"index": 0, "records": None}]}],
            ),
            9,
        ),
        (
            "the same protocol twice",
            build(
                ApiKey.JOIN_GROUP,
                group_id="twice",
                session_timeout_ms=6000,
                rebalance_timeout_ms=100,
                protocol_type="consumer",
                protocols=[{"name": "range", "metadata": b""}] * 2,
            ),
            3,
        ),
        ("offsets of no group", build(ApiKey.OFFSET_FETCH), 8),
        (
            "one resource twice",
            build(ApiKey.ALTER_CONFIGS, resources=[{"resource_type": 2, "resource_name": "x", "configs": []}] * 2),
            2,
        ),
        (
            "a batch for every partition there could be",
            build(
                ApiKey.PRODUCE,
                acks=1,
                timeout_ms=100,
                topic_data=[
                    {"name": "t", "partition_data": [{"index": i, "records": batch(b"v")} for i in range(5000)]}
                ],
            ),
            9,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_apache_leaves_unanswered(broker: Broker, label: str, request_: Request, version: int) -> None:
    """Apache Kafka 3.9 never answers some of these; a client of ours is not left waiting."""
    assert label
    if broker.target == "odradek":
        assert answers(broker, request_, version)
